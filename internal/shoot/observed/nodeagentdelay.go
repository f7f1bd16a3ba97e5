package observed

import (
	"strconv"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

const (
	// defaultNodeAgentDelay is that of gardener-resource-manager.
	defaultNodeAgentDelay = 5 * time.Minute
	// MaxNodeAgentDelay is the highest possible value. Source: concepts.txt, "Node Agent Reconciliation Delay Controller".
	MaxNodeAgentDelay = 1800 * time.Second
)

// NodeAgentDelay returns within which time the gardener-node-agents of a shoot begin to apply a new configuration: the default, or what the
// shoot owner has set instead. A value that is no number of seconds is ignored.
func NodeAgentDelay(shoot *corev1beta1.Shoot) time.Duration {
	seconds, err := strconv.ParseUint(shoot.Annotations[constants.ShootCloudConfigExecutionMaxDelaySeconds], 10, 31)
	if err != nil {
		return defaultNodeAgentDelay
	}
	return min(time.Duration(seconds)*time.Second, MaxNodeAgentDelay) //nolint:gosec // 31 bits
}
