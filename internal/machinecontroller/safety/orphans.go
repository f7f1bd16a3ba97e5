// Package safety keeps mistakes cheap: it knows when the target cluster is out of reach, deletes machines that no Machine stands for, and
// marks Nodes that no Machine stands for.
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

// grace is how long a Node may have no machine before it is marked.
const grace = 5 * time.Minute

// Orphans deletes machines that no Machine stands for, such as those whose Machine was deleted by force.
type Orphans struct {
	// Reader reads from the API server of the control cluster: what is missing in a cache is not gone.
	Reader client.Reader
	// Target is the target cluster.
	Target client.Client
	// Namespace is that of the Machines.
	Namespace string
	// Driver lists and deletes machines.
	Driver driver.Driver
	// Credentials reads those of a class.
	Credentials func(context.Context, client.Reader, *machinev1alpha1.MachineClass) (map[string][]byte, error)
	// Period is how often it looks. Infrastructures do not tell.
	Period time.Duration
	// Clock is the time.
	Clock clock.WithTicker
}

// Start implements manager.Runnable.
func (o *Orphans) Start(ctx context.Context) error {
	ticker := o.Clock.NewTicker(o.Period)
	defer ticker.Stop()
	for {
		if err := o.Pass(ctx); err != nil && ctx.Err() == nil {
			logf.FromContext(ctx).Error(err, "Cannot look for orphans")
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// Pass looks at everything once.
func (o *Orphans) Pass(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	return errors.Join(o.machines(ctx), o.nodes(ctx))
}

func (o *Orphans) machines(ctx context.Context) error {
	classes := &machinev1alpha1.MachineClassList{}
	if err := o.Reader.List(ctx, classes, client.InNamespace(o.Namespace)); err != nil {
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
	credentials, err := o.Credentials(ctx, o.Reader, class)
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
	// In this order: a machine is made for a Machine that is there before.
	machines := &machinev1alpha1.MachineList{}
	if err := o.Reader.List(ctx, machines, client.InNamespace(o.Namespace)); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	var errs []error
	for _, orphan := range orphans(found, machines.Items) {
		logf.FromContext(ctx).Info("Deleting a machine that no Machine stands for", "machine", orphan.Name, "providerID", orphan.Spec.ProviderID)
		orphan.Namespace, orphan.Spec.Class = o.Namespace, machinev1alpha1.ClassSpec{Kind: machinev1alpha1.MachineClassKind, Name: class.Name}
		if err := o.Driver.DeleteMachine(ctx, driver.Request{ClassRequest: request, Machine: orphan}); err != nil && driver.CodeOf(err) != driver.DeadlineExceeded {
			errs = append(errs, fmt.Errorf("delete machine %s: %w", orphan.Name, err))
		}
	}
	return errors.Join(errs...)
}

// orphans are the machines, by provider ID, that no Machine stands for by name or provider ID.
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

// nodes marks those that no Machine stands for. They may be somebody's own, so nothing else happens to them.
func (o *Orphans) nodes(ctx context.Context) error {
	nodes := &corev1.NodeList{}
	if err := o.Target.List(ctx, nodes); err != nil {
		return fmt.Errorf("list Nodes: %w", err)
	}
	machines := &machinev1alpha1.MachineList{}
	if err := o.Reader.List(ctx, machines, client.InNamespace(o.Namespace)); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	var errs []error
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if !unmanaged(node, machines.Items, o.Clock.Now()) || node.Annotations[machinev1alpha1.NotManagedByMCM] != "" {
			continue
		}
		errs = append(errs, client.IgnoreNotFound(kube.PatchMetadata(ctx, o.Target, node, func(meta *metav1.PartialObjectMetadata) {
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
