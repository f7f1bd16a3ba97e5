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

// dnsRecords serves DNSRecords with the DNS server of this process. The informer updates the server as well, see feed.
type dnsRecords struct{ zones *dnsserver.Zones }

// Reconcile serves a record set.
func (a *dnsRecords) Reconcile(_ context.Context, record *extensionsv1alpha1.DNSRecord, _ *extension.Cluster) error {
	if errs := a.zones.Set(client.ObjectKeyFromObject(record).String(), &record.Spec); len(errs) > 0 {
		return errorcode.With(errs.ToAggregate(), corev1beta1.ErrorConfigurationProblem)
	}
	zone := a.zones.Zone(record.Spec.Name)
	record.Status.Zone = &zone
	return nil
}

// Delete stops serving a record set.
func (a *dnsRecords) Delete(_ context.Context, record *extensionsv1alpha1.DNSRecord, _ *extension.Cluster) error {
	a.zones.Remove(client.ObjectKeyFromObject(record).String())
	return nil
}

// Migrate stops serving a record set, which the server of the other seed will serve.
func (a *dnsRecords) Migrate(ctx context.Context, record *extensionsv1alpha1.DNSRecord, cluster *extension.Cluster) error {
	return a.Delete(ctx, record, cluster)
}

// feed updates the server with all DNSRecords, of whichever class: the process of the garden and that of the seed that are in one cluster serve one
// zone, so that resolvers need to know one of them only, as with a zone at a DNS provider. The actuator alone is not enough: after a restart, it does not reconcile records that are up to
// date, and it does not run in a replica that does not lead. The process is ready when the server has all records.
func feed(ctx context.Context, informers cache.Cache, zones *dnsserver.Zones) error {
	informer, err := informers.GetInformer(ctx, &extensionsv1alpha1.DNSRecord{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch DNSRecords: %w", err)
	}
	update := func(obj any) {
		record, ok := obj.(*extensionsv1alpha1.DNSRecord)
		if !ok {
			return
		}
		key := client.ObjectKeyFromObject(record).String()
		if !served(record) {
			zones.Remove(key)
			return
		}
		_ = zones.Set(key, &record.Spec) // errors are in its status
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    update,
		UpdateFunc: func(_, obj any) { update(obj) },
		DeleteFunc: func(obj any) {
			if key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				zones.Remove(key)
			}
		},
	})
	return err
}

// served reports whether a record set is served. One that was migrated to another seed is not.
func served(record *extensionsv1alpha1.DNSRecord) bool {
	last := record.Status.LastOperation
	moved := last != nil && last.Type == corev1beta1.LastOperationTypeMigrate
	return record.Spec.Type == Type && record.DeletionTimestamp == nil && !moved
}
