package local

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/provider/local/dnsserver"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
)

// dnsRecords makes the server of this process answer for DNSRecords. The informer tells the server, too: see feed.
type dnsRecords struct{ zones *dnsserver.Zones }

// Reconcile makes the server answer for a record set.
func (a *dnsRecords) Reconcile(_ context.Context, record *extensionsv1alpha1.DNSRecord, _ *extension.Cluster) error {
	if errs := a.zones.Set(client.ObjectKeyFromObject(record).String(), &record.Spec); len(errs) > 0 {
		return errorcode.With(errs.ToAggregate(), corev1beta1.ErrorConfigurationProblem)
	}
	zone := a.zones.Zone(record.Spec.Name)
	record.Status.Zone = &zone
	return nil
}

// Delete makes the server forget a record set.
func (a *dnsRecords) Delete(_ context.Context, record *extensionsv1alpha1.DNSRecord, _ *extension.Cluster) error {
	a.zones.Remove(client.ObjectKeyFromObject(record).String())
	return nil
}

// Migrate leaves the name to the server of the other seed.
func (a *dnsRecords) Migrate(ctx context.Context, record *extensionsv1alpha1.DNSRecord, cluster *extension.Cluster) error {
	return a.Delete(ctx, record, cluster)
}

// feed tells the server what DNSRecords there are. The actuator would not do after a restart, when all is as ordered, nor in a replica
// that does not lead. The process is ready when all of them are known.
func feed(ctx context.Context, informers cache.Cache, zones *dnsserver.Zones) error {
	informer, err := informers.GetInformer(ctx, &extensionsv1alpha1.DNSRecord{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch DNSRecords: %w", err)
	}
	tell := func(obj any) {
		record, ok := obj.(*extensionsv1alpha1.DNSRecord)
		if !ok {
			return
		}
		key := client.ObjectKeyFromObject(record).String()
		if !served(record) {
			zones.Remove(key)
			return
		}
		_ = zones.Set(key, &record.Spec) // what is wrong with it is in its status
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		UpdateFunc: func(_, obj any) { tell(obj) },
		DeleteFunc: func(obj any) {
			if key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				zones.Remove(key)
			}
		},
	})
	return err
}

// served tells whether a name is to be answered for. One that has moved to another seed is not.
func served(record *extensionsv1alpha1.DNSRecord) bool {
	last := record.Status.LastOperation
	moved := last != nil && last.Type == corev1beta1.LastOperationTypeMigrate
	return record.Spec.Type == Type && record.DeletionTimestamp == nil && !moved
}
