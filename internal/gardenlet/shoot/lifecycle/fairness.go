package lifecycle

import (
	"time"

	"k8s.io/utils/ptr"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// retryTurn is when a shoot is tried again while others of its project have the workers that the project may have.
const retryTurn = 5 * time.Second

// mostOperations returns how many operations may run for shoots in a namespace, or 0 without a limit; workers is how many the gardenlet runs at once. Members of a
// project decide for how long those of their shoots take: what they have in a cluster may keep its finalizers, their infrastructure may respond to nothing, and
// their nodes may delay what is written to them. A project may have three quarters of them, so that others have at least one. The namespace garden, in which only
// operators have shoots, may have all, and there is no limit with a single worker, or if their number is not known.
func mostOperations(namespace string, workers *int) int {
	all := ptr.Deref(workers, 0)
	if all <= 1 || namespace == constants.GardenNamespace {
		return 0
	}
	return all * 3 / 4
}
