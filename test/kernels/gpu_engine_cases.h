/*-------------------------------------------------------------------------
 *
 * gpu_engine_cases.h
 *	  What an engine must survive or refuse: memory that runs out, requests that are wrong or too large, loads
 *	  that are given up, a device that is lost, and kernels that hang.  A part of gpu_engine.cu.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_GPU_ENGINE_CASES_H
#define TEST_GPU_ENGINE_CASES_H

/* Posts a small scan of one of the trees, all of which are there; of which one. */
static int
send_small(int i)
{
	start_scan(i, true);
	CHECK(sent[i].tree >= 0 && sent[i].kept);
	post_kept();
	CHECK(!sent[i].kept);
	return sent[i].tree;
}

static void
load_all(void)
{
	for (int t = 0; t < TREES; t++)
		load(t);
}

/* Loads trees whose small scans the persistent kernel answers, all of them. */
static void
load_served(void)
{
	structure_kinds = 1;
	load_all();
	structure_kinds = STRUCTURE_KINDS;
}

/* Waits until a thread of the engine has taken up what was submitted. */
static void
await_begin(GpuRequestQueue *queue)
{
	bool begun = false;

	while (!begun)
	{
		std::lock_guard<std::mutex> guard(queue->mutex);

		begun = queue->first == NULL;
	}
}

/* A drop waits for a scan that is done, but for the engine nobody polls: closing does not wait with it. */
static void
close_beside_drop(void)
{
	int t;

	open_engine();
	load_served();
	t = send_small(0);
	while (!is_done(&staging->scan[0].request))
		sched_yield();
	staging->guard[t] = 0;
	submit_change(t, GPU_DROP, 0);
	await_begin(&engine->changes);
	CHECK(!is_done(&staging->change[t].request));
	CHECK(api->close(engine, PATIENCE_NS));
	CHECK(!is_done(&staging->change[t].request));
	passed++;
}

/* A batch for a tree, whatever comes of it; the version that it makes, if any, is noted. */
static uint32_t
try_apply(int t)
{
	uint32_t status;

	start_apply(t);
	await_answer(&staging->change[t].request);
	status = staging->change[t].request.status;
	if (status == GPU_OK)
		finish_apply(t);
	else
		free(tree[t].next.e);
	tree[t].changing = false;
	return status;
}

/* The process's memory runs out: the request is answered so, and nothing was changed. */
static void
no_host_memory(void)
{
	GpuEngineInfo before, after;

	open_engine();
	load(0);
	CHECK(try_apply(0) == GPU_OK);
	api->info(engine, &before);
	api->inject(engine, GPU_INJECT_BAD_ALLOC);
	CHECK(try_apply(0) == GPU_NO_MEMORY);
	api->info(engine, &after);
	CHECK(after.memory_used <= before.memory_used);
	CHECK(try_apply(0) == GPU_OK);
	submit_change(0, GPU_VERIFY, 0);
	await_change(0, GPU_OK);
	passed++;
#ifdef GPU_EMULATED
	/* each allocation there is, of any of the engine's threads */
	for (int64_t fail = 0;; fail++)
	{
		uint32_t status;

		drop(0);
		forget_versions(0);
		new_fails_after = fail;
		submit_change(0, GPU_LOAD_BEGIN, 0);
		await_answer(&staging->change[0].request);
		status = staging->change[0].request.status;
		for (int64_t n = 0; n < 300000 && status == GPU_OK; n += PIECE / (int64_t) sizeof(GpudsEntry))
		{
			GpudsEntry *e = (GpudsEntry *) staging->change[0].input;

			for (int64_t i = 0; i < PIECE / (int64_t) sizeof(GpudsEntry); i++)
			{
				e[i].w0 = (uint64_t) (n + i);
				e[i].w1 = e[i].t = 0;
			}
			submit_change(0, GPU_LOAD_ADD, PIECE / (int64_t) sizeof(GpudsEntry));
			await_answer(&staging->change[0].request);
			status = staging->change[0].request.status;
		}
		if (status == GPU_OK)
		{
			submit_change(0, GPU_LOAD_END, 0);
			await_answer(&staging->change[0].request);
			status = staging->change[0].request.status;
		}
		CHECK(status == GPU_OK || status == GPU_NO_MEMORY);
		if (status == GPU_OK && new_fails_after >= 0)
			break;
		CHECK(status == GPU_NO_MEMORY && fail < 100);
		passed++;
	}
	new_fails_after = -1;
#endif
	drop(0);
	api->info(engine, &after);
	CHECK(after.memory_used == 0);
	CHECK(api->close(engine, PATIENCE_NS));
}

/* The engine says which structures it has, and begins no load of another. */
static void
no_structure(void)
{
	GpuEngineInfo info;

	CHECK(api->structures == STRUCTURE_BITS);
	options.lacking = STRUCTURE_BITS;
	open_engine();
	submit_change(0, GPU_LOAD_BEGIN, 0);
	await_change(0, GPU_NO_STRUCTURE);
	api->info(engine, &info);
	CHECK(info.memory_used == 0);
	CHECK(api->close(engine, PATIENCE_NS));
	options.lacking = 0;
	passed++;
}

/* Sends a count that is as it was made but for what is set here; what it is answered. */
static uint32_t
try_count(uint64_t GpuRequest::*field, uint64_t value, uint32_t row_slots, uint32_t row_words)
{
	Mailbox *m = &staging->scan[0];
	GpuRequest *r = &m->request;

	do
	{
		sent[0].tree = -1;
		start_scan(0, true);
	} while (sent[0].tree < 0);
	make_count(m, &tree[sent[0].tree].version[0]);
	sent[0].kept = false;
	r->row_slots = row_slots;
	r->row_words = row_words;
	r->row_npages = row_slots;
	r->*field = value;
	api->submit(engine, r);
	await_answer(r);
	CHECK(r->status == GPU_OK || (r->next == 0 && r->found == 0));
	tree[sent[0].tree].scans--;
	sent[0].tree = -1;
	return r->status;
}

/* A count whose map or rows are not where the engine may read them, or do not fit, is refused. */
static void
misplaced(void)
{
	const uint64_t end = options.staging_bytes;
	const uint64_t room = PIECE;

	open_engine();
	load_all();
	CHECK(try_count(&GpuRequest::map_bytes, 0, 0, 0) == GPU_OK);
	CHECK(try_count(&GpuRequest::map_bytes, room, 0, 0) == GPU_OK);
	CHECK(try_count(&GpuRequest::map_bytes, room + 1, 0, 0) == GPU_NO_REQUEST);
	CHECK(try_count(&GpuRequest::map_bytes, UINT64_MAX, 0, 0) == GPU_NO_REQUEST);
	CHECK(try_count(&GpuRequest::map, end - 1024, 0, 0) == GPU_OK);
	CHECK(try_count(&GpuRequest::map_bytes, room - 64 * 4 * 2, 64, 0) == GPU_OK);
	CHECK(try_count(&GpuRequest::map_bytes, room - 64 * 4 * 2 + 1, 64, 0) == GPU_NO_REQUEST);
	CHECK(try_count(&GpuRequest::map_bytes, room - 64 * 4 * 3, 64, 1) == GPU_OK);
	CHECK(try_count(&GpuRequest::map_bytes, room - 64 * 4 * 3, 64, 2) == GPU_NO_REQUEST);
	CHECK(try_count(&GpuRequest::row_places, end - 64 * 4, 64, 1) == GPU_OK);
	CHECK(try_count(&GpuRequest::row_places, end - 64 * 4 + 4, 64, 1) == GPU_NO_REQUEST);
	CHECK(try_count(&GpuRequest::row_places, UINT64_MAX - 3, 64, 1) == GPU_NO_REQUEST);
	CHECK(try_count(&GpuRequest::row_pages, end - 64 * 4 * 2, 64, 1) == GPU_OK);
	CHECK(try_count(&GpuRequest::row_pages, end - 64 * 4, 64, 1) == GPU_NO_REQUEST);
	CHECK(try_count(&GpuRequest::map_bytes, 0, 3, 1) == GPU_NO_REQUEST);
	CHECK(try_count(&GpuRequest::map_bytes, 0, 1, PAGE_ROWS_MAX_WORDS) == GPU_OK);
	CHECK(try_count(&GpuRequest::map_bytes, 0, 1, PAGE_ROWS_MAX_WORDS + 1) == GPU_NO_REQUEST);
	CHECK(try_count(&GpuRequest::map_bytes, 0, UINT32_C(1) << 31, UINT32_MAX) == GPU_NO_REQUEST);
	CHECK(api->close(engine, PATIENCE_NS));
	passed++;
}

/* A load of more entries than a tree can have is refused before anything is done. */
static void
too_large(void)
{
	GpuEngineInfo before, after;

	open_engine();
	load(0);
	api->info(engine, &before);
	submit_change(0, GPU_LOAD_BEGIN, (int64_t) GPU_MAX_ENTRIES + 1);
	await_change(0, GPU_TOO_LARGE);
	api->info(engine, &after);
	CHECK(after.memory_used <= before.memory_used);
	drop(0);
	submit_change(0, GPU_LOAD_BEGIN, (int64_t) GPU_MAX_ENTRIES);
	await_change(0, GPU_OK);
	drop(0);
	CHECK(api->close(engine, PATIENCE_NS));
	passed++;
}

/* A load can be given up wherever it is: the drop that follows gives all of its memory back. */
static void
give_load_up(void)
{
	const GpuRequestKind kinds[] = { GPU_LOAD_BEGIN, GPU_LOAD_ADD, GPU_LOAD_END };
	GpuEngineInfo info;

	open_engine();
	tree[0].nwords = 1;
	memset(staging->change[0].input, 0, sizeof(GpudsEntry));
	for (int last = 0; last < 3; last++)
	{
		for (int i = 0; i <= last; i++)
		{
			submit_change(0, kinds[i], kinds[i] == GPU_LOAD_ADD);
			await_change(0, GPU_OK);
		}
		api->info(engine, &info);
		CHECK(info.memory_used > 0);
		drop(0);
		api->info(engine, &info);
		CHECK(info.memory_used == 0);
	}
	CHECK(api->close(engine, PATIENCE_NS));
	passed++;
}

/*
 * Loses the device with requests under way.  Those that it had not finished are
 * not answered; when the engine is closed they are ours, and nobody writes to them.
 */
static void
lose(void)
{
	char why[200] = "";
	bool ours[SENDERS];

	open_engine();
	CHECK(!api->lost(engine, why, sizeof(why)));
	load_all();
	for (int i = 0; i < SENDERS; i++)
		start_scan(i, false);
	post_kept();
	api->inject(engine, GPU_INJECT_STICKY);
	CHECK(api->lost(engine, why, sizeof(why)) && why[0] != '\0');
	for (int i = 0; i < 1000; i++)
	{
		post_kept();
		look();
	}
	submit_change(0, GPU_VERIFY, 0);
	for (int i = 0; i < 1000; i++)
		api->poll(engine);
	CHECK(!is_done(&staging->change[0].request));
	CHECK(api->close(engine, PATIENCE_NS));
	for (int i = 0; i < SENDERS; i++)
	{
		ours[i] = sent[i].tree >= 0 && !is_done(&staging->scan[i].request);
		if (ours[i])
			memset((void *) &staging->scan[i], 0xA5, sizeof(Mailbox));
	}
	usleep(20000);
	for (int i = 0; i < SENDERS; i++)
	{
		const unsigned char *p = (const unsigned char *) &staging->scan[i];

		for (size_t at = 0; ours[i] && at < sizeof(Mailbox); at++)
			CHECK(p[at] == 0xA5);
	}
	passed++;
}

/* A request of a kind that the ring serves hangs: its age tells, others go on. */
static void
hang_small(void)
{
	open_engine();
	CHECK(api->oldest_ns(engine) == 0);
	load_served();
	api->inject(engine, GPU_INJECT_HANG);
	(void) send_small(0);
	(void) send_small(1);
	while (!is_done(&staging->scan[1].request) || api->in_flight(engine) > 1)
		api->poll(engine);
	finish_scan(1);
	while (api->oldest_ns(engine) < 30000000)
		api->poll(engine);
	CHECK(!is_done(&staging->scan[0].request) && api->in_flight(engine) == 1);
	CHECK(api->close(engine, PATIENCE_NS));
	passed++;
}

/* A kernel hangs: its request has an age, the others are served, and closing gives up. */
static void
hang_kernel(void)
{
	open_engine();
	load_all();
	CHECK(api->oldest_ns(engine) == 0);
	api->inject(engine, GPU_INJECT_HANG);
	submit_change(0, GPU_VERIFY, 0);
	while (api->oldest_ns(engine) < 30000000)
		api->poll(engine);
	(void) send_small(1);
	await_answer(&staging->scan[1].request);
	finish_scan(1);
	CHECK(api->oldest_ns(engine) >= 30000000);
	CHECK(!api->close(engine, 10000000));
	CHECK(!is_done(&staging->change[0].request));
	passed++;
}

#endif /* TEST_GPU_ENGINE_CASES_H */
