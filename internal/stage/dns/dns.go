// Package dns is the stage that makes a kube-apiserver reachable: its routes through the gateway of the seed, and DNSRecords of its
// domains. Both may exist long before it.
package dns

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/exposure"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/component/usercopy"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/usercredential"
	"gardener.cloud/gardener/pkg/flow"
)

// Domain is one under which a kube-apiserver is reached.
type Domain struct {
	// Name is the domain, such as "crazy-botany.dev.internal.example.com".
	Name string
	// Provider is the type of the DNSRecord, or constants.DNSProviderUnmanaged if the owner of the shoot takes care of its records.
	Provider string
	// Zone is the zone at the provider. Nil means that the extension finds it.
	Zone *string
	// Credentials are those of the provider.
	Credentials usercredential.Credential
}

// Host returns a name in the domain.
func (d *Domain) Host(prefix string) string { return prefix + "." + d.Name }

// Managed reports whether Gardener has a DNSRecord for the domain.
func (d *Domain) Managed() bool { return d != nil && d.Provider != constants.DNSProviderUnmanaged }

// Inputs are what the tasks read.
type Inputs struct {
	Run *stage.Run
	// Hosts are the names of the kube-apiserver.
	Hosts []string
	// Internal and External are the domains. Nil means that there is none.
	Internal, External *Domain
	// InternalRequested and ExternalRequested are whether a record is reconciled even if nothing has changed.
	InternalRequested, ExternalRequested bool
	// Gateway is the one through which the kube-apiserver is exposed. The zero value is that of the seed.
	Gateway client.ObjectKey
	// OtherGateways also lead to the kube-apiserver.
	OtherGateways []client.ObjectKey
	// Termination is nil if the gateway passes TLS connections through. Otherwise it ends them.
	Termination *Termination
	// IPFamilies are those of the shoot. None means IPv4.
	IPFamilies []corev1beta1.IPFamily
	// TTL is how many seconds records are valid. Nil leaves it to the extension.
	TTL *int64
}

// Tasks returns the tasks of the stage.
func Tasks(in Inputs) []flow.Task {
	var tasks []flow.Task
	if in.External.Managed() {
		tasks = append(tasks, in.record(extensionsv1alpha1.DNSRecordExternalName, in.External, in.ExternalRequested))
	}
	if in.Internal.Managed() {
		tasks = append(tasks, in.record(extensionsv1alpha1.DNSRecordInternalName, in.Internal, in.InternalRequested))
	}
	return append(tasks, Exposure(in)...)
}

// Exposure returns the tasks that route connections from the gateway to the kube-apiserver. Without a Termination, it passes them through.
func Exposure(in Inputs) []flow.Task {
	tasks := []flow.Task{flow.Do("exposure", "Exposing kube-apiserver through the gateway", func(ctx context.Context) error {
		hosts, err := in.routed(ctx)
		if err != nil {
			return err
		}
		v := exposure.ForAPIServer(in.Run.Namespace, hosts...)
		v.Gateway, v.Others = in.Gateway, in.OtherGateways
		if err := in.Run.Apply(ctx, exposure.Objects(v)...); err != nil || in.Termination != nil {
			return err
		}
		return in.Run.Delete(ctx, gateway.CredentialsSecret(in.gateway().Namespace, in.route()), in.loadBalancing().ConfigMap(in.Run.Namespace))
	}, "namespace")}
	if in.Termination != nil {
		tasks = append(tasks, in.Termination.task(in), in.loadBalancingTask())
	}
	return tasks
}

// gateway is the one of the kube-apiserver.
func (in Inputs) gateway() client.ObjectKey { return gateway.KeyOr(in.Gateway) }

// route is the one of the kube-apiserver.
func (in Inputs) route() client.ObjectKey {
	return client.ObjectKey{Namespace: in.Run.Namespace, Name: exposure.ForAPIServer(in.Run.Namespace).Service}
}

// Deletion returns the tasks that delete the DNSRecords of a kube-apiserver that does not run, also those of domains that the cluster no longer
// has. They come after other tasks.
func Deletion(run *stage.Run, after ...string) []flow.Task {
	var tasks []flow.Task
	for _, name := range []string{extensionsv1alpha1.DNSRecordExternalName, extensionsv1alpha1.DNSRecordInternalName} {
		tasks = append(tasks, flow.Await(stage.ExtensionTimeout, "dnsrecord-"+name+"-gone", "Deleting the "+name+" DNSRecord", func(ctx context.Context) error {
			return run.DeleteExtension(ctx, run.DNSRecord(name))
		}, after...))
	}
	return tasks
}

// record returns the task for a DNSRecord with the name of the kube-apiserver in a domain. A record that has not changed needs no request to the
// provider, unless it was requested.
func (in Inputs) record(name string, d *Domain, requested bool) flow.Task {
	return flow.Await(stage.ExtensionTimeout, "dnsrecord-"+name, "Waiting until "+name+" DNSRecord is ready", func(ctx context.Context) error {
		address, err := GatewayAddress(ctx, in.Run.SeedAPI, in.Gateway)
		if err != nil {
			return err
		}
		values, record, host, recordType := in.Run.ExtensionValues(), in.Run.DNSRecord(name), d.Host(constants.APIServerFQDNPrefix), RecordType(address)
		// Before the credentials become those of another provider.
		if err := DeleteChanged(ctx, values, record, d.Provider, host, recordType); err != nil {
			return err
		}
		secret := usercopy.DNSRecord(in.Run.Name, name)
		if err := d.Credentials.Write(ctx, in.Run, secret, nil); err != nil {
			return err
		}
		if err := d.Credentials.AwaitToken(ctx, in.Run.SeedAPI, in.Run.Namespace, secret); err != nil {
			return err
		}
		values.Always = requested
		if err := extensionobject.Apply(ctx, values, record, func(record *extensionsv1alpha1.DNSRecord) {
			// Extensions look for the addresses of the kube-apiserver by these labels.
			metav1.SetMetaDataLabel(&record.ObjectMeta, constants.GardenRole, constants.GardenRoleControlPlane)
			metav1.SetMetaDataLabel(&record.ObjectMeta, constants.Role, name)
			metav1.SetMetaDataAnnotation(&record.ObjectMeta, constants.DNSIPStack, IPStack(in.IPFamilies))
			record.Spec.Type, record.Spec.Zone = d.Provider, d.Zone
			record.Spec.SecretRef = corev1.SecretReference{Namespace: in.Run.Namespace, Name: secret}
			record.Spec.Name, record.Spec.RecordType, record.Spec.Values = host, recordType, []string{address}
			record.Spec.TTL = in.TTL
		}); err != nil {
			return err
		}
		return extensionobject.Await(ctx, values, record)
	}, "namespace", "cluster")
}

// DeleteChanged deletes a DNSRecord that has another provider, host or type of record than it is to have, as these cannot change, and waits until it is gone:
// the gateway may have got a host name instead of an IP address, or an operator has chosen another provider.
func DeleteChanged(
	ctx context.Context, v extensionobject.Values, record *extensionsv1alpha1.DNSRecord, provider, host string, recordType extensionsv1alpha1.DNSRecordType,
) error {
	stored := &extensionsv1alpha1.DNSRecord{}
	switch err := v.Client.Get(ctx, client.ObjectKeyFromObject(record), stored); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read DNSRecord %q: %w", record.Name, err)
	case stored.Spec.Type == provider && stored.Spec.Name == host && stored.Spec.RecordType == recordType:
		return nil
	}
	if err := extensionobject.Delete(ctx, v, stored); err != nil {
		return err
	}
	return extensionobject.AwaitGone(ctx, v, stored)
}

// GatewayAddress waits until a gateway has an address: the one of the seed, if the key is the zero value.
func GatewayAddress(ctx context.Context, seedAPI client.WithWatch, key client.ObjectKey) (address string, err error) {
	key = gateway.KeyOr(key)
	err = kube.Await(ctx, seedAPI, &gatewayv1.GatewayList{}, func(gateways []*gatewayv1.Gateway) error {
		for _, g := range gateways {
			for _, a := range g.Status.Addresses {
				address = a.Value
				return nil
			}
		}
		return fmt.Errorf("Gateway %s has no address yet", key)
	}, nil, client.InNamespace(key.Namespace), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", key.Name)})
	return address, err
}

// IPStack is the value of the annotation DNSIPStack of a DNSRecord, for IP families. The address may be a host name, which does not tell an
// extension the families.
func IPStack(families []corev1beta1.IPFamily) string {
	switch {
	case len(families) > 1:
		return constants.IPStackDualStack
	case slices.Contains(families, corev1beta1.IPFamilyIPv6):
		return constants.IPStackIPv6
	}
	return constants.IPStackIPv4
}

// RecordType is the type of a record for an address.
func RecordType(address string) extensionsv1alpha1.DNSRecordType {
	ip, err := netip.ParseAddr(address)
	switch {
	case err != nil:
		return extensionsv1alpha1.DNSRecordTypeCNAME
	case ip.Is4():
		return extensionsv1alpha1.DNSRecordTypeA
	}
	return extensionsv1alpha1.DNSRecordTypeAAAA
}
