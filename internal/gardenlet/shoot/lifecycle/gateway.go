package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/shoot/observed"
)

// setGateways sets the gateways of a shoot: that of the handler of its ExposureClass or of the seed or, if the control plane is in one zone, the one in
// that zone, as soon as it has an address. The one of all zones also leads to the shoot then, as do those that clients may still use.
//
// If the gardenlet does not have the handler, a shoot keeps the gateways that it has: versions without handlers gave it that of the seed. For a new one
// it is an error, as another gateway may be in a network that its owner did not choose. The error has no code: an operator can add the handler, and the
// shoot is tried again until then.
func (r observer) setGateways(ctx context.Context, o *observed.State) error {
	current, err := r.currentGateways(ctx, o.Namespace)
	if err != nil {
		return err
	}
	if name := ptr.Deref(o.Shoot.Spec.ExposureClassName, ""); name != "" {
		class := &corev1beta1.ExposureClass{}
		if err := r.gardenAPI.Get(ctx, client.ObjectKey{Name: name}, class); err != nil {
			return fmt.Errorf("read ExposureClass %q: %w", name, err)
		}
		var found bool
		if o.Gateway, found = r.gateways[class.Handler]; !found {
			if len(current) == 0 {
				return fmt.Errorf("the gardenlet of seed %q has no handler %q, which ExposureClass %q needs", o.Seed.Name, class.Handler, name)
			}
			o.Gateway, o.OtherGateways = current[0], current[1:]
			return nil
		}
	}
	if err := r.preferZone(ctx, o); err != nil {
		return err
	}
	return r.keepGateways(ctx, o, current)
}

// preferZone replaces the gateway of a shoot by the one in the zone of its control plane, if that is in one zone that has a gateway with an address.
func (r observer) preferZone(ctx context.Context, o *observed.State) error {
	if len(o.Zones) != 1 || !slices.Contains(gateway.Zones(o.Seed), o.Zones[0]) {
		return nil
	}
	allZones := gateway.KeyOr(o.Gateway)
	zonal := client.ObjectKey{Namespace: gateway.ZoneNamespace(allZones.Namespace, o.Zones[0]), Name: gateway.Name}
	addresses, err := r.gatewayAddresses(ctx, zonal)
	if err == nil && len(addresses) > 0 {
		o.Gateway, o.OtherGateways = zonal, []client.ObjectKey{allZones}
	}
	return err
}

// keepGateways adds the former gateways of a shoot while one of its DNSRecords leads elsewhere than to the present one.
func (r observer) keepGateways(ctx context.Context, o *observed.State, former []client.ObjectKey) error {
	present := gateway.KeyOr(o.Gateway)
	former = slices.DeleteFunc(former, func(key client.ObjectKey) bool { return key == present || slices.Contains(o.OtherGateways, key) })
	if len(former) == 0 {
		return nil
	}
	addresses, err := r.gatewayAddresses(ctx, present)
	if err != nil {
		return err
	}
	records := &extensionsv1alpha1.DNSRecordList{}
	if err := r.seedAPI.List(ctx, records, client.InNamespace(o.Namespace)); err != nil {
		return fmt.Errorf("list DNSRecords: %w", err)
	}
	if slices.ContainsFunc(records.Items, func(record extensionsv1alpha1.DNSRecord) bool {
		return !slices.ContainsFunc(record.Spec.Values, func(value string) bool { return slices.Contains(addresses, value) })
	}) {
		o.OtherGateways = append(o.OtherGateways, former...)
	}
	return nil
}

// gatewayAddresses returns the addresses of a gateway. One that does not exist has none.
func (r observer) gatewayAddresses(ctx context.Context, key client.ObjectKey) ([]string, error) {
	g := &gatewayv1.Gateway{}
	if err := r.seedAPI.Get(ctx, key, g); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Gateway %q: %w", key, err)
	}
	var addresses []string
	for _, address := range g.Status.Addresses {
		addresses = append(addresses, address.Value)
	}
	return addresses, nil
}

// currentGateways returns the gateways of the TLSRoutes of a shoot, those of the first references first.
func (r observer) currentGateways(ctx context.Context, namespace string) ([]client.ObjectKey, error) {
	routes := &gatewayv1.TLSRouteList{}
	if err := r.seedAPI.List(ctx, routes, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list TLSRoutes: %w", err)
	}
	var gateways []client.ObjectKey
	for i := range routes.Items {
		for _, parent := range routes.Items[i].Spec.ParentRefs {
			key := client.ObjectKey{Namespace: string(ptr.Deref(parent.Namespace, "")), Name: string(parent.Name)}
			if !slices.Contains(gateways, key) {
				gateways = append(gateways, key)
			}
		}
	}
	return gateways, nil
}
