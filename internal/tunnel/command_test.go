package tunnel

import (
	"context"
	"testing"
	"time"
)

// The grace period of a proxy's pod is five seconds, and its node waits for the next pod: it drains for a shorter time than others.
func TestServiceDrainsForItsOwnTime(t *testing.T) {
	c := &common{} // port 0: any free port serves probes
	var left time.Duration
	err := c.serve(done(), func(context.Context, *Metrics) (*service, error) {
		return &service{
			drainTimeout: proxyDrainTimeout, stop: func() {},
			drain: func(ctx context.Context) {
				end, _ := ctx.Deadline()
				left = time.Until(end)
			},
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if left <= 0 || left > proxyDrainTimeout {
		t.Errorf("it drains for %s", left)
	}
}
