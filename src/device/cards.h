/*-------------------------------------------------------------------------
 *
 * cards.h
 *	  The GPUs that the server is to use: its cards, numbered from 0.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CARDS_H
#define GPUDS_CARDS_H

#include "utils/guc.h"

/* Cards that there can be. */
#define GPUDS_MOST_CARDS 16

extern int gpuds_cards; /* that have a worker each; 0: the engine's library is not there */
extern int gpuds_card_id[GPUDS_MOST_CARDS]; /* CUDA's numbers of them */

extern bool gpuds_check_device_ids(char **newval, void **extra, GucSource source);
extern void gpuds_find_cards(const char *ids);

#endif /* GPUDS_CARDS_H */
