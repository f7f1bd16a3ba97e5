// Package safety checks whether the target cluster is reachable, deletes machines without a Machine, and annotates Nodes without a Machine.
//
// It reads Machines and MachineClasses in the control cluster, and writes an annotation of Nodes in the target cluster.
package safety

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
)

// passTimeout limits a pass over all classes.
const passTimeout = 10 * time.Minute

// grace is how long a Node may have no Machine before it is annotated.
const grace = 5 * time.Minute

// Orphans deletes machines without a Machine, such as those whose Machine was deleted by force.
type Orphans struct {
	// ControlAPI reads Machines and MachineClasses from the API server, as a Machine may be missing in a cache.
	ControlAPI client.Reader
	// TargetCache reads Nodes from a cache, and annotates them.
	TargetCache client.Client
	// Namespace is that of the Machines.
	Namespace string
	// Driver lists and deletes machines.
	Driver driver.Driver
	// Credentials reads the credentials of a class.
	Credentials func(context.Context, client.Reader, *machinev1alpha1.MachineClass) (map[string][]byte, error)
	// Period is how often machines are listed.
	Period time.Duration
	// Clock is for the period, and for the age of Nodes.
	Clock clock.WithTicker
}

// Start implements manager.Runnable. The first pass is after a period: a seed that was lost and returns has old Machines, and must have the time to notice
// that its control plane was restored elsewhere, where machines were created since.
func (o *Orphans) Start(ctx context.Context) error {
	ticker := o.Clock.NewTicker(o.Period)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
		if err := o.Pass(ctx); err != nil && ctx.Err() == nil {
			logf.FromContext(ctx).Error(err, "Cannot delete orphans")
		}
	}
}

// Pass checks all machines and Nodes once.
func (o *Orphans) Pass(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	return errors.Join(o.machines(ctx), o.nodes(ctx))
}

func (o *Orphans) machines(ctx context.Context) error {
	classes := &machinev1alpha1.MachineClassList{}
	if err := o.ControlAPI.List(ctx, classes, client.InNamespace(o.Namespace)); err != nil {
		return fmt.Errorf("list MachineClasses: %w", err)
	}
	var errs []error
	for i := range classes.Items {
		if err := o.ofClass(ctx, &classes.Items[i]); err != nil {
			errs = append(errs, fmt.Errorf("MachineClass %s: %w", classes.Items[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

func (o *Orphans) ofClass(ctx context.Context, class *machinev1alpha1.MachineClass) error {
	credentials, err := o.Credentials(ctx, o.ControlAPI, class)
	if err != nil {
		return err
	}
	request := driver.ClassRequest{Class: class, Credentials: credentials}
	found, err := o.Driver.ListMachines(ctx, request)
	if driver.CodeOf(err) == driver.Unimplemented {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list machines: %w", err)
	}
	// Afterwards, as a Machine exists before its machine.
	machines := &machinev1alpha1.MachineList{}
	if err := o.ControlAPI.List(ctx, machines, client.InNamespace(o.Namespace)); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	var errs []error
	for _, orphan := range orphans(found, machines.Items) {
		logf.FromContext(ctx).Info("Deleting a machine without a Machine", "machine", orphan.Name, "providerID", orphan.Spec.ProviderID)
		orphan.Namespace, orphan.Spec.Class = o.Namespace, machinev1alpha1.ClassSpec{Kind: machinev1alpha1.MachineClassKind, Name: class.Name}
		if err := o.Driver.DeleteMachine(ctx, driver.Request{ClassRequest: request, Machine: orphan}); err != nil && driver.CodeOf(err) != driver.DeadlineExceeded {
			errs = append(errs, fmt.Errorf("delete machine %s: %w", orphan.Name, err))
		}
	}
	return errors.Join(errs...)
}

// orphans returns a Machine for each of the found machines whose name and provider ID no existing Machine has.
func orphans(found map[string]string, machines []machinev1alpha1.Machine) []*machinev1alpha1.Machine {
	known := map[string]bool{}
	for _, machine := range machines {
		known[machine.Name] = true
		known[machine.Spec.ProviderID] = true
	}
	var out []*machinev1alpha1.Machine
	for _, providerID := range slices.Sorted(maps.Keys(found)) {
		if name := found[providerID]; !known[name] && !known[providerID] {
			out = append(out, &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: machinev1alpha1.MachineSpec{ProviderID: providerID}})
		}
	}
	return out
}

// nodes annotates Nodes without a Machine. They are not deleted, as they may belong to a user.
func (o *Orphans) nodes(ctx context.Context) error {
	nodes := &corev1.NodeList{}
	if err := o.TargetCache.List(ctx, nodes); err != nil {
		return fmt.Errorf("list Nodes: %w", err)
	}
	machines := &machinev1alpha1.MachineList{}
	if err := o.ControlAPI.List(ctx, machines, client.InNamespace(o.Namespace)); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	var errs []error
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if !unmanaged(node, machines.Items, o.Clock.Now()) || node.Annotations[machinev1alpha1.NotManagedByMCM] != "" {
			continue
		}
		errs = append(errs, client.IgnoreNotFound(kube.PatchMetadata(ctx, o.TargetCache, node, func(meta *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&meta.ObjectMeta, machinev1alpha1.NotManagedByMCM, "1")
		})))
	}
	return errors.Join(errs...)
}

func unmanaged(node *corev1.Node, machines []machinev1alpha1.Machine, now time.Time) bool {
	return now.Sub(node.CreationTimestamp.Time) > grace && !slices.ContainsFunc(machines, func(m machinev1alpha1.Machine) bool {
		return m.Labels[machinev1alpha1.NodeLabelKey] == node.Name || m.Name == node.Labels[machinev1alpha1.MachineLabelKey] ||
			m.Spec.ProviderID != "" && m.Spec.ProviderID == node.Spec.ProviderID
	})
}
