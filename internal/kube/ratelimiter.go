package kube

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// firstRetry is the delay after the first error, which is that of controllers without a limiter of their own.
const firstRetry = 5 * time.Millisecond

// RateLimiter returns a limiter for a controller whose failed objects are retried at once, then after twice that, and so on up to a longest delay.
// Without it, that is 16 minutes.
func RateLimiter(longest time.Duration) workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, longest)
}
