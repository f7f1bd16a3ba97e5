package lifecycle

import (
	"context"

	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/pkg/flow"
)

// sleep are the tasks that stop what runs, after everything else is done: first who writes, last who keeps.
func (h *hosted) sleep(before []flow.Task) []flow.Task {
	return []flow.Task{
		task("stop-controllers", "Stopping the controller manager and the scheduler", func(ctx context.Context) error {
			if err := h.deployControllerManager(ctx, 0); err != nil || h.workerless() {
				return err
			}
			return h.deployScheduler(ctx, 0)
		}, last(before)...),
		task("stop-resource-manager", "Stopping the resource manager", func(ctx context.Context) error {
			return h.deployResourceManager(ctx, 0)
		}, last(before)...),
		task("stop-kube-apiserver", "Stopping the API server", func(ctx context.Context) error {
			if err := h.deployAPIServer(ctx, 0); err != nil || h.workerless() {
				return err
			}
			return h.deployTunnelServer(ctx, 0)
		}, "stop-controllers", "stop-resource-manager"),
		task("stop-etcd", "Stopping etcd", func(ctx context.Context) error {
			for _, role := range []etcd.Role{etcd.Main, etcd.Events} {
				if err := h.orderEtcd(ctx, role, 0); err != nil {
					return err
				}
			}
			return nil
		}, "stop-kube-apiserver"),
	}
}
