/*-------------------------------------------------------------------------
 *
 * cards.c
 *	  Which GPUs there are for the server: gpuds.device_ids, or all that it sees.
 *
 * Shared memory is sized by their number before any process may call CUDA, and the
 * postmaster never does.  So it looks where the driver lists its cards, at their device
 * files, of which a container has some, and at the variable by which CUDA leaves out
 * some.  A card too many costs a worker that says that it is not there.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <ctype.h>
#include <dirent.h>
#include <unistd.h>

#include "device/cards.h"

/* Where the driver has a directory for each card, with a file that says the number of its device file. */
#define DRIVER_CARDS "/proc/driver/nvidia/gpus"
#define CARD_FILE "/dev/nvidia%d"

#define MAX_ID 1023

int gpuds_cards = 0;
int gpuds_card_id[GPUDS_MOST_CARDS];

/* Reads a list of different numbers into id; *n: how many.  NULL: it is right, else what is wrong. */
static const char *
parse_ids(const char *list, int id[GPUDS_MOST_CARDS], int *n)
{
	const char *at = list;

	*n = 0;
	for (;;)
	{
		char *end;
		long number;

		while (isspace((unsigned char) *at))
			at++;
		if (!isdigit((unsigned char) *at))
			return "It is a list of numbers, separated by commas.";
		number = strtol(at, &end, 10);
		if (number > MAX_ID)
			return "A number is too large.";
		for (int i = 0; i < *n; i++)
		{
			if (id[i] == number)
				return "A GPU is named twice.";
		}
		if (*n == GPUDS_MOST_CARDS)
			return "There are more than 16 GPUs.";
		id[(*n)++] = (int) number;
		for (at = end; isspace((unsigned char) *at);)
			at++;
		if (*at == '\0')
			return NULL;
		if (*at++ != ',')
			return "It is a list of numbers, separated by commas.";
	}
}

StaticAssertDecl(GPUDS_MOST_CARDS == 16, "a message says how many GPUs there can be");

/* Checks gpuds.device_ids: empty, or a list of different numbers. */
bool
gpuds_check_device_ids(char **newval, void **extra, GucSource source)
{
	int id[GPUDS_MOST_CARDS];
	int n;
	const char *wrong = **newval == '\0' ? NULL : parse_ids(*newval, id, &n);

	if (wrong)
		GUC_check_errdetail("%s", wrong);
	return wrong == NULL;
}

/* How many cards CUDA is to see of those that there are; -1: all. */
static int
count_visible(void)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	int n = 1;

	if (visible == NULL)
		return -1;
	for (; *visible != '\0'; visible++)
		n += *visible == ',';
	return n;
}

/* May the process use the card of that name in the driver's directory? */
static bool
is_open_to_us(const char *name)
{
	char path[MAXPGPATH];
	char line[256];
	FILE *file;
	int number = -1;

	snprintf(path, sizeof(path), DRIVER_CARDS "/%s/information", name);
	file = fopen(path, "r");
	if (file == NULL)
		return false;
	while (number < 0 && fgets(line, sizeof(line), file))
		(void) sscanf(line, "Device Minor: %d", &number);
	fclose(file);
	snprintf(path, sizeof(path), CARD_FILE, number);
	return number >= 0 && access(path, R_OK | W_OK) == 0;
}

/* Counts the driver's cards that we may use; all of them, if device files are not there yet. */
static int
count_in_driver(void)
{
	DIR *dir = opendir(DRIVER_CARDS);
	const struct dirent *entry;
	int n = 0;
	int ours = 0;

	if (dir == NULL)
		return 0;
	while ((entry = readdir(dir)) != NULL)
	{
		if (entry->d_name[0] == '.')
			continue;
		n++;
		ours += is_open_to_us(entry->d_name);
	}
	closedir(dir);
	return ours > 0 ? ours : n;
}

/*
 * Sets which cards there are to be, one at least; to be called once, if the engine's library is there.  ids:
 * gpuds.device_ids, which has been checked.
 */
void
gpuds_find_cards(const char *ids)
{
	int n = count_visible();

	if (*ids != '\0' && parse_ids(ids, gpuds_card_id, &gpuds_cards) == NULL)
		return;
	if (n < 0)
		n = count_in_driver();
	gpuds_cards = Min(Max(n, 1), GPUDS_MOST_CARDS);
	for (int card = 0; card < gpuds_cards; card++)
		gpuds_card_id[card] = card;
}
