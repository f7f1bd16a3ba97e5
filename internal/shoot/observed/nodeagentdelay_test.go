package observed

import (
	"testing"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestNodeAgentDelay(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 5 * time.Minute, "0": 0, "1": time.Second, "1800": 30 * time.Minute,
		"1801": 30 * time.Minute, "2147483647": 30 * time.Minute, // the highest possible value
		"abc": 5 * time.Minute, "-1": 5 * time.Minute, "1.5": 5 * time.Minute, "10s": 5 * time.Minute, "9999999999": 5 * time.Minute, // ignored
	} {
		shoot := &corev1beta1.Shoot{}
		shoot.Annotations = map[string]string{"shoot.gardener.cloud/cloud-config-execution-max-delay-seconds": value}
		if got := NodeAgentDelay(shoot); got != want {
			t.Errorf("NodeAgentDelay() of %q = %s, want %s", value, got, want)
		}
	}
	if got := NodeAgentDelay(&corev1beta1.Shoot{}); got != 5*time.Minute {
		t.Errorf("NodeAgentDelay() = %s without the annotation", got)
	}
}
