package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
)

// Gateways are the gateways of handlers of ExposureClasses, by the names of the handlers.
func Gateways(handlers []gardenletconfigv1alpha1.ExposureClassHandler) map[string]client.ObjectKey {
	gateways := map[string]client.ObjectKey{}
	for _, handler := range handlers {
		gateways[handler.Name] = client.ObjectKey{Namespace: *handler.SNI.Ingress.Namespace, Name: gateway.Name}
	}
	return gateways
}

// furtherComponents are the objects of the gateways of handlers and zones that must be healthy.
func furtherComponents(seed *corev1beta1.Seed, handlers []gardenletconfigv1alpha1.ExposureClassHandler) []client.Object {
	var components []client.Object
	for _, v := range (&reconciler{Values: Values{Handlers: handlers}}).newRun(seed).furtherGateways() {
		components = append(components,
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: gateway.Name}},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.ServiceName}})
	}
	return components
}

// furtherGateways are the gateways besides that of the seed: of each handler of ExposureClasses and, for control planes that are in one zone, of each
// zone, for handlers as well. They have the settings of the Seed for load balancers, with what a zone and then a handler has instead.
func (s *run) furtherGateways() []gateway.Values {
	var gateways []gateway.Values
	zones := gateway.Zones(s.seed)
	for _, zone := range zones {
		v := s.gatewayOf(zone)
		v.Namespace, v.ServiceName = gateway.ZoneNamespace(gateway.Namespace, zone), gateway.Name
		if s.SNI != nil && s.SNI.Ingress != nil {
			v.PodLabels = s.SNI.Ingress.Labels
		}
		gateways = append(gateways, v)
	}
	for _, handler := range s.Handlers {
		for _, zone := range append([]string{""}, zones...) {
			v := s.gatewayOf(zone)
			ingress, service := handler.SNI.Ingress, handler.LoadBalancerService
			v.Handler, v.Namespace, v.ServiceName, v.PodLabels = handler.Name, *ingress.Namespace, *ingress.ServiceName, ingress.Labels
			if zone == "" {
				v.LoadBalancerIP = ingress.ServiceExternalIP
			} else {
				v.Namespace = gateway.ZoneNamespace(v.Namespace, zone)
			}
			v.ServiceAnnotations = workload.Merge(v.ServiceAnnotations, service.Annotations)
			if service.Class != nil {
				v.LoadBalancerClass = service.Class
			}
			gateways = append(gateways, v)
		}
	}
	return gateways
}

// gatewayOf is a gateway with the settings of the Seed for a zone, or for all of them.
func (s *run) gatewayOf(zone string) gateway.Values {
	lb := s.loadBalancer(zone)
	return gateway.Values{
		ControllerImage: s.Images.Gardener, ProxyImage: s.Images.HAProxy, Replicas: s.replicas, Zone: zone, ServiceAnnotations: lb.Annotations,
		LoadBalancerClass: lb.Class, ExternalTrafficPolicy: lb.ExternalTrafficPolicy, ProxyProtocol: lb.ProxyProtocol, TerminateTLS: s.TerminateTLS,
	}
}

// deployGateways deploys the gateways of zones and of handlers of ExposureClasses, and deletes those of former ones.
func (s *run) deployGateways(ctx context.Context) error {
	gateways := s.furtherGateways()
	var errs []error
	for _, v := range gateways {
		if err := s.deployGateway(ctx, v); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", owner(v), err))
		}
	}
	return errors.Join(append(errs, s.deleteUnusedGateways(ctx, gateways))...)
}

// owner says in messages what a gateway is for.
func owner(v gateway.Values) string {
	switch {
	case v.Zone == "":
		return fmt.Sprintf("handler %q", v.Handler)
	case v.Handler == "":
		return fmt.Sprintf("zone %q", v.Zone)
	}
	return fmt.Sprintf("handler %q in zone %q", v.Handler, v.Zone)
}

func (s *run) deployGateway(ctx context.Context, v gateway.Values) error {
	// A namespace of something else would be deleted with the gateway.
	namespace := &corev1.Namespace{}
	err := s.SeedAPI.Get(ctx, client.ObjectKey{Name: v.Namespace}, namespace)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read Namespace %q: %w", v.Namespace, err)
	case err == nil && !maps.Equal(marks(namespace), gateway.Marks(v)):
		return fmt.Errorf("Namespace %q exists, and is not that of this gateway", v.Namespace)
	case err == nil && namespace.DeletionTimestamp != nil:
		return fmt.Errorf("Namespace %q is being deleted", v.Namespace)
	}
	if err := systemcomponents.KeepLoadBalancerClass(ctx, s.SeedAPI, &v); err != nil {
		return err
	}
	objects := gateway.FurtherObjects(v)
	if workload.Autoscaled(s.seed) {
		objects = append(objects, workload.Autoscalers(objects, func(string) workload.Autoscaling { return workload.Autoscaling{} })...)
	}
	if err := s.apply(ctx, objects...); err != nil {
		return err
	}
	return s.deleteFormerServices(ctx, v)
}

// marks are the labels of a namespace by which a further gateway is known.
func marks(namespace *corev1.Namespace) map[string]string {
	return gateway.Marks(gateway.Values{
		Handler: namespace.Labels[constants.ExposureClassHandlerName], Zone: namespace.Labels[corev1.LabelTopologyZone],
	})
}

// deleteFormerServices deletes the Services of a handler that have another name than its configuration says: each of them costs a load balancer.
// They stay while a DNSRecord may lead to them: shoots get the address of the other one when they are reconciled.
func (s *run) deleteFormerServices(ctx context.Context, v gateway.Values) error {
	services := &corev1.ServiceList{}
	if err := s.SeedAPI.List(ctx, services, client.InNamespace(v.Namespace), client.MatchingLabels{constants.ExposureClassHandlerName: v.Handler}); err != nil {
		return fmt.Errorf("list Services in Namespace %q: %w", v.Namespace, err)
	}
	if len(services.Items) < 2 {
		return nil
	}
	records := &extensionsv1alpha1.DNSRecordList{}
	if err := s.SeedAPI.List(ctx, records); err != nil {
		return fmt.Errorf("list DNSRecords: %w", err)
	}
	var current []string
	if i := slices.IndexFunc(services.Items, func(service corev1.Service) bool { return service.Name == v.ServiceName }); i >= 0 {
		current = addresses(&services.Items[i])
	}
	for i := range services.Items {
		service := &services.Items[i]
		if service.Name == v.ServiceName || service.Name == gateway.InternalService {
			continue // the second one has no load balancer, and pods of control planes may have its address
		}
		if record := recordThrough(records.Items, addresses(service), current); record != nil && !takesAddress(v, service) {
			logf.FromContext(ctx).Info("Keeping a former Service of a handler of ExposureClasses", "service", client.ObjectKeyFromObject(service).String(),
				"dnsRecord", client.ObjectKeyFromObject(record).String())
			continue
		}
		if err := s.SeedAPI.Delete(ctx, service); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Service %q: %w", client.ObjectKeyFromObject(service), err)
		}
	}
	return nil
}

// addresses are those of the load balancer of a Service.
func addresses(service *corev1.Service) []string {
	var all []string
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		all = append(all, cmp.Or(ingress.IP, ingress.Hostname))
	}
	return all
}

// takesAddress says whether a gateway is to have the address of a former Service, and cannot as long as that exists.
func takesAddress(v gateway.Values, former *corev1.Service) bool {
	return v.LoadBalancerIP != nil && slices.Contains(addresses(former), *v.LoadBalancerIP)
}

// recordThrough returns a DNSRecord that may lead to former addresses, or nil: it has one of them, or its provider does not have the current one yet.
func recordThrough(records []extensionsv1alpha1.DNSRecord, former, current []string) *extensionsv1alpha1.DNSRecord {
	i := slices.IndexFunc(records, func(record extensionsv1alpha1.DNSRecord) bool {
		has := func(address string) bool { return slices.Contains(record.Spec.Values, address) }
		return slices.ContainsFunc(former, has) || slices.ContainsFunc(current, has) && !extensionobject.Judge(&record).Ready
	})
	if i < 0 {
		return nil
	}
	return &records[i]
}

// deleteUnusedGateways deletes the gateways of zones and handlers that the Seed or the configuration does not have, or has in another namespace. Those
// that shoots still use stay: the shoots get another one when they are reconciled.
func (s *run) deleteUnusedGateways(ctx context.Context, desired []gateway.Values) error {
	unused, err := s.furtherNamespaces(ctx)
	if err != nil {
		return err
	}
	unused = slices.DeleteFunc(unused, func(n corev1.Namespace) bool {
		return slices.ContainsFunc(desired, func(v gateway.Values) bool { return v.Namespace == n.Name })
	})
	if len(unused) == 0 {
		return nil
	}
	routes := &gatewayv1.TLSRouteList{}
	if err := s.SeedAPI.List(ctx, routes); err != nil {
		return fmt.Errorf("list TLSRoutes: %w", err)
	}
	for i := range unused {
		namespace := &unused[i]
		if route := routeThrough(routes.Items, namespace.Name); route != nil {
			logf.FromContext(ctx).Info("Keeping the gateway of a former zone or handler of ExposureClasses", "namespace", namespace.Name,
				"route", client.ObjectKeyFromObject(route).String())
			continue
		}
		if err := s.deleteGateway(ctx, namespace); err != nil {
			return err
		}
	}
	return nil
}

// deleteGateways deletes the gateways of all zones and handlers.
func (s *run) deleteGateways(ctx context.Context) error {
	namespaces, err := s.furtherNamespaces(ctx)
	if err != nil {
		return err
	}
	for i := range namespaces {
		if err := s.deleteGateway(ctx, &namespaces[i]); err != nil {
			return err
		}
	}
	return nil
}

// furtherNamespaces returns the namespaces of the gateways of all zones and handlers, also of former ones.
func (s *run) furtherNamespaces(ctx context.Context) ([]corev1.Namespace, error) {
	namespaces := &corev1.NamespaceList{}
	roles, err := labels.NewRequirement(constants.GardenRole, selection.In, []string{constants.GardenRoleIstioIngress, constants.GardenRoleExposureClassHandler})
	if err != nil {
		return nil, err
	}
	if err := s.SeedAPI.List(ctx, namespaces, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*roles)}); err != nil {
		return nil, fmt.Errorf("list Namespaces of gateways: %w", err)
	}
	return slices.DeleteFunc(namespaces.Items, func(n corev1.Namespace) bool { return len(marks(&n)) == 0 }), nil
}

// deleteGateway deletes what a further gateway has. The namespace is last: as long as it exists, the binding is found again.
func (s *run) deleteGateway(ctx context.Context, namespace *corev1.Namespace) error {
	for _, object := range []client.Object{gateway.FurtherBinding(namespace.Name), namespace} {
		if err := s.SeedAPI.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %T %q: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// routeThrough returns a route with a gateway in a namespace, or nil.
func routeThrough(routes []gatewayv1.TLSRoute, namespace string) *gatewayv1.TLSRoute {
	i := slices.IndexFunc(routes, func(route gatewayv1.TLSRoute) bool {
		return slices.ContainsFunc(route.Spec.ParentRefs, func(ref gatewayv1.ParentReference) bool {
			return string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(route.Namespace))) == namespace
		})
	})
	if i < 0 {
		return nil
	}
	return &routes[i]
}
