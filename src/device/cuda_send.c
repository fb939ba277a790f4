/*-------------------------------------------------------------------------
 *
 * cuda_send.c
 *	  Requests of a session to several cards at once, or to one.
 *
 * A session waits for staging memory only while it holds none (README.md).  So the first request waits for
 * it, and goes in any case; each other one goes with it if there is memory for it at that moment, and
 * otherwise the caller sends it again.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "device/cuda_requests.h"

/* Opens all mailboxes, which may wait, before there is anything that an error would leave behind. */
static bool
open_all(GpudsCudaSend **sends, int n)
{
	for (int i = 0; i < n; i++)
	{
		sends[i]->sent.mailbox = gpuds_mailbox_open(sends[i]->epoch, false);
		if (sends[i]->sent.mailbox == NULL)
			return false;
	}
	return true;
}

static bool
take_memory(GpudsCudaSend *send, bool wait)
{
	if (send->most == 0)
		return true;
	if (!wait)
		return gpuds_staging_try(send->sent.span, send->epoch, send->least, send->most);
	gpuds_staging_take(send->sent.span, send->epoch, send->least, send->most);
	return true;
}

/* Gives back what a request has that will not be answered, or whose answer is not wanted. */
void
gpuds_cuda_give_back(GpudsCudaSend *send)
{
	if (send->sent.mailbox)
		gpuds_mailbox_close(send->sent.mailbox);
	send->sent.mailbox = NULL;
	if (send->sent.span)
		gpuds_staging_give(send->sent.span);
}

/*
 * Sends the first of n requests and as many others as there is staging memory for, each to another card, and
 * waits for all answers.  The mailbox of one that was not sent is NULL.  False: a card was lost, and nothing
 * is left to be closed or given back.  An error leaves nothing, either.
 */
bool
gpuds_cuda_send(GpudsCudaSend **sends, int n)
{
	GpudsSent *sent[GPUDS_MOST_CARDS];
	int nsent = 0;
	bool lost = !open_all(sends, n);

	Assert(n <= GPUDS_MOST_CARDS);
	if (lost)
		return false;
	for (int i = 0; i < n && !lost; i++)
	{
		GpudsSent *one = &sends[i]->sent;

		if (!take_memory(sends[i], i == 0))
		{
			one->mailbox = NULL;
			continue;
		}
		sends[i]->fill(sends[i]);
		lost = !gpuds_mailbox_post(one->mailbox, one->span, sends[i]->epoch);
		if (lost)
			one->mailbox = NULL;
		else
			sent[nsent++] = one;
	}
	gpuds_mailbox_collect(sent, nsent);
	for (int i = 0; i < nsent; i++)
		lost |= sent[i]->mailbox == NULL;
	for (int i = 0; i < n && lost; i++)
		gpuds_cuda_give_back(sends[i]);
	return !lost;
}
