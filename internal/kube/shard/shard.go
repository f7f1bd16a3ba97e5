// Package shard spreads objects evenly over a number of places or over a period, by a hash of their UID. The place of an object is the
// same each time that it is computed.
package shard

import (
	"fmt"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Of returns the place of an object among n places: a number from 0 to n-1. It is 0 if n is 0.
func Of(uid types.UID, n uint64) uint64 { return of(string(uid), n) }

// Delay returns a part of a period, below its whole, that differs between objects. It also differs from one time to the next; times in
// the same second count as equal, as API servers store no fractions.
func Delay(uid types.UID, at time.Time, period time.Duration) time.Duration {
	return time.Duration(of(fmt.Sprint(uid, at.Unix()), uint64(max(period, 0)))) //nolint:gosec // less than the period
}

func of(key string, n uint64) uint64 {
	if n == 0 {
		return 0
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key)) // never fails
	return hash.Sum64() % n
}
