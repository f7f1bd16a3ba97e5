// Package hibernation is the stage that stops a control plane after everything else is done: first the components that write to the
// cluster, last etcd.
package hibernation

import (
	"context"

	"gardener.cloud/gardener/pkg/flow"
)

// Inputs are functions that deploy components without pods.
type Inputs struct {
	// KubeControllerManager, ResourceManager, KubeAPIServer, EtcdMain and EtcdEvents are components that every cluster has.
	KubeControllerManager, ResourceManager, KubeAPIServer, EtcdMain, EtcdEvents func(context.Context) error
	// KubeScheduler, MachineControllerManager and TunnelServer are those of a cluster with nodes. Nil means that it has none.
	KubeScheduler, MachineControllerManager, TunnelServer func(context.Context) error
}

// Tasks returns the tasks of the stage. They come after all tasks of a list.
func Tasks(in Inputs, others []flow.Task) []flow.Task {
	after := flow.Last(others)
	controllers, scaleControllers := "Scaling down kube-controller-manager", in.KubeControllerManager
	if in.KubeScheduler != nil {
		controllers = "Scaling down machine-controller-manager, kube-controller-manager and kube-scheduler"
		scaleControllers = inOrder(in.MachineControllerManager, in.KubeControllerManager, in.KubeScheduler)
	}
	server, scaleServer := "Scaling down kube-apiserver", in.KubeAPIServer
	if in.TunnelServer != nil {
		server, scaleServer = server+" and vpn-seed-server", inOrder(in.KubeAPIServer, in.TunnelServer)
	}
	return []flow.Task{
		flow.Do("stop-controllers", controllers, scaleControllers, after...),
		flow.Do("stop-resource-manager", "Scaling down gardener-resource-manager", in.ResourceManager, after...),
		flow.Do("stop-kube-apiserver", server, scaleServer, "stop-controllers", "stop-resource-manager"),
		flow.Do("stop-etcd", "Scaling down etcd", inOrder(in.EtcdMain, in.EtcdEvents), "stop-kube-apiserver"),
	}
}

// inOrder runs functions one after the other, up to the first error.
func inOrder(functions ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, run := range functions {
			if err := run(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}
