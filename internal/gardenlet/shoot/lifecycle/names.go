package lifecycle

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/exposure"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/component/usercopy"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	// tunnelPrefix and proxyPrefix are the names of the tunnel server, and of the way by which pods of a shoot reach their API server.
	tunnelPrefix, proxyPrefix = "tunnel", "proxy"
	purposeLabel              = constants.GardenerPurpose
)

// hosts are the names that clients reach the API server by.
func (w *world) hosts() []string {
	var hosts []string
	if w.internal != nil {
		hosts = append(hosts, w.internal.host(constants.APIServerFQDNPrefix), w.internal.host(proxyPrefix))
	}
	if w.external != nil {
		hosts = append(hosts, w.external.host(constants.APIServerFQDNPrefix))
	}
	return hosts
}

// tunnelHost is the name by which nodes reach the tunnel server.
func (w *world) tunnelHost() string {
	if w.internal == nil {
		return ""
	}
	return w.internal.host(tunnelPrefix)
}

// names are the tasks after which clients find the API server. Routes and records may be there long before it.
func (h *hosted) names() []flow.Task {
	tasks := []flow.Task{
		task("exposure", "Opening the way to the API server", func(ctx context.Context) error {
			return h.apply(ctx, exposure.Objects(exposure.ForAPIServer(h.namespace, h.hosts()...))...)
		}, "namespace"),
	}
	for name, d := range map[string]*domain{extensionsv1alpha1.DNSRecordInternalName: h.internal, extensionsv1alpha1.DNSRecordExternalName: h.external} {
		if d == nil || d.provider == constants.DNSProviderUnmanaged {
			continue
		}
		tasks = append(tasks, lasting(extensionTimeout, task("dnsrecord-"+name, "Creating the "+name+" domain", func(ctx context.Context) error {
			return h.record(ctx, name, d)
		}, "namespace", "cluster")))
	}
	return sorted(tasks)
}

// record has an extension serve the name of the API server in a domain.
func (h *hosted) record(ctx context.Context, name string, d *domain) error {
	address, err := h.gatewayAddress(ctx)
	if err != nil {
		return err
	}
	secret := usercopy.DNSRecord(h.shoot.Name, name)
	if err := h.copyCredential(ctx, d.credentials, secret, nil); err != nil {
		return err
	}
	record := h.dnsRecord(name)
	return h.fulfil(ctx, record, func(record *extensionsv1alpha1.DNSRecord) {
		record.Spec.Type, record.Spec.Zone = d.provider, d.zone
		record.Spec.SecretRef = corev1.SecretReference{Namespace: h.namespace, Name: secret}
		record.Spec.Name, record.Spec.RecordType, record.Spec.Values = d.host(constants.APIServerFQDNPrefix), recordType(address), []string{address}
		record.Spec.TTL = h.Config.DNSEntryTTLSeconds
	})
}

func (w *world) dnsRecord(name string) *extensionsv1alpha1.DNSRecord {
	return &extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.shoot.Name + "-" + name}}
}

// fulfil orders a DNSRecord and waits until it is served. One that is, and stays as it is, costs nobody anything.
func (h *hosted) fulfil(ctx context.Context, record *extensionsv1alpha1.DNSRecord, set func(*extensionsv1alpha1.DNSRecord)) error {
	v := extensionobject.Values{Client: h.SeedClient, Clock: h.Clock}
	if err := extensionobject.Order(ctx, v, record, set); err != nil {
		return err
	}
	return extensionobject.Await(ctx, v, record)
}

// gatewayAddress waits until the gateway of the seed has an address.
func (h *hosted) gatewayAddress(ctx context.Context) (address string, err error) {
	err = kube.Await(ctx, h.SeedClient, &gatewayv1.GatewayList{}, func(gateways []*gatewayv1.Gateway) error {
		for _, g := range gateways {
			for _, a := range g.Status.Addresses {
				address = a.Value
				return nil
			}
		}
		return fmt.Errorf("Gateway %s/%s has no address yet", gateway.Namespace, gateway.Name)
	}, nil, client.InNamespace(gateway.Namespace), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", gateway.Name)})
	return address, err
}

// recordType is the kind of record that an address needs.
func recordType(address string) extensionsv1alpha1.DNSRecordType {
	ip, err := netip.ParseAddr(address)
	switch {
	case err != nil:
		return extensionsv1alpha1.DNSRecordTypeCNAME
	case ip.Is4():
		return extensionsv1alpha1.DNSRecordTypeA
	}
	return extensionsv1alpha1.DNSRecordTypeAAAA
}
