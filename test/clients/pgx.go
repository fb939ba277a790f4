// Sends a batch of keys from Go with pgx, as a binary array: to a query, and to gpuds_contains.
//
//	pgx NKEYS    connects as PGHOST, PGPORT, ... say; prints "form answer milliseconds"
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v4"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fastest is the time of the fastest of ten executions, in milliseconds.
func fastest(execute func() error) float64 {
	var least float64
	for i := 0; i < 10; i++ {
		began := time.Now()
		check(execute())
		took := time.Since(began).Seconds() * 1000
		if i == 0 || took < least {
			least = took
		}
	}
	return least
}

func main() {
	n, err := strconv.Atoi(os.Args[1])
	check(err)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, "")
	check(err)
	defer conn.Close(ctx)

	keys := make([]int64, n)
	for i := range keys {
		keys[i] = int64(i) * 3
	}

	// pgx prepares the statement, and sends []int64 as a binary bigint[].
	var count, sum int64
	ms := fastest(func() error {
		return conn.QueryRow(ctx, "SELECT count(*), sum(v) FROM items WHERE key = ANY ($1)", keys).Scan(&count, &sum)
	})
	fmt.Printf("binary %d|%d %.1f\n", count, sum, ms)

	var answers []bool
	ms = fastest(func() error {
		return conn.QueryRow(ctx, "SELECT gpuds_contains('items_key_idx', $1::bigint[])", keys).Scan(&answers)
	})
	found := 0
	for _, answer := range answers {
		if answer {
			found++
		}
	}
	fmt.Printf("contains %d %.1f\n", found, ms)
}
