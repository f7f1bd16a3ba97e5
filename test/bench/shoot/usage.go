package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/landscape"
)

// measure adds up the processes of the control planes of some shoots, and of their machines. The processor time is since their start.
func (b *bench) measure(ctx context.Context, r *report, creations []*creation) error {
	controlPlanes, nodes := usage{}, usage{}
	for _, c := range creations {
		if c.healthy == 0 {
			continue
		}
		current := &corev1beta1.Shoot{}
		if err := b.garden.Get(ctx, c.key(), current); err != nil {
			return err
		}
		pods, machines := &corev1.PodList{}, &corev1.PodList{}
		if err := errors.Join(
			b.seed.List(ctx, pods, client.InNamespace(current.Status.TechnicalID)),
			b.seed.List(ctx, machines, client.InNamespace(localv1alpha1.InfrastructureNamespace(current.Status.TechnicalID))),
		); err != nil {
			return err
		}
		for _, used := range landscape.UsageOf(pods.Items)[current.Status.TechnicalID] {
			controlPlanes.add(used)
		}
		r.ControlPlanes++
		if len(machines.Items) == 0 {
			continue
		}
		inside := &corev1.PodList{}
		if err := c.api.List(ctx, inside); err != nil {
			return err
		}
		for i := range machines.Items {
			for _, used := range landscape.UsageOfMachine(&machines.Items[i], inside.Items) {
				used.Component = program(used.Component)
				nodes.add(used)
			}
			r.Nodes++
		}
	}
	r.ControlPlane, r.Node = controlPlanes.list(), nodes.list()
	return nil
}

// program returns one name for all programs of the operating system.
func program(name string) string {
	switch {
	case strings.HasPrefix(name, "containerd-shim"):
		return "containerd-shim"
	case slices.Contains([]string{"init", "sshd", "agetty", "dbus-daemon", "pause"}, name), strings.HasPrefix(name, "systemd"), strings.HasPrefix(name, "(sd-"):
		return "operating system"
	}
	return name
}

// usage is the usage of components, by their names.
type usage map[string]landscape.ComponentUsage

func (u usage) add(used landscape.ComponentUsage) { u[used.Component] = sum(u[used.Component], used) }

func sum(a, b landscape.ComponentUsage) landscape.ComponentUsage {
	return landscape.ComponentUsage{
		Component: b.Component, Pods: a.Pods + b.Pods, Proportional: a.Proportional + b.Proportional, Processor: a.Processor + b.Processor,
	}
}

// list returns the components, the largest first.
func (u usage) list() []landscape.ComponentUsage {
	all := make([]landscape.ComponentUsage, 0, len(u))
	for _, used := range u {
		all = append(all, used)
	}
	slices.SortFunc(all, func(a, b landscape.ComponentUsage) int {
		return cmp.Or(cmp.Compare(b.Proportional, a.Proportional), cmp.Compare(a.Component, b.Component))
	})
	return all
}
