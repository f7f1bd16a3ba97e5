package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
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

// handlerComponents are the objects of the gateways of handlers that must be healthy.
func handlerComponents(handlers []gardenletconfigv1alpha1.ExposureClassHandler) []client.Object {
	var components []client.Object
	for _, handler := range handlers {
		ingress := handler.SNI.Ingress
		components = append(components,
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: *ingress.Namespace, Name: gateway.Name}},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: *ingress.Namespace, Name: *ingress.ServiceName}})
	}
	return components
}

// handlerGateways are the gateways of the handlers of ExposureClasses. They have the settings of the Seed for load balancers, with what a handler
// has instead.
func (s *run) handlerGateways() []gateway.Values {
	lb := s.loadBalancer()
	gateways := make([]gateway.Values, 0, len(s.Handlers))
	for _, handler := range s.Handlers {
		ingress, service := handler.SNI.Ingress, handler.LoadBalancerService
		v := gateway.Values{
			ControllerImage: s.Images.Gardener, ProxyImage: s.Images.HAProxy, Replicas: s.replicas, Handler: handler.Name,
			Namespace: *ingress.Namespace, ServiceName: *ingress.ServiceName, PodLabels: ingress.Labels, LoadBalancerIP: ingress.ServiceExternalIP,
			ServiceAnnotations: workload.Merge(lb.Annotations, service.Annotations), LoadBalancerClass: lb.Class,
			ExternalTrafficPolicy: lb.ExternalTrafficPolicy, ProxyProtocol: lb.ProxyProtocol, TerminateTLS: s.TerminateTLS,
		}
		if service.Class != nil {
			v.LoadBalancerClass = service.Class
		}
		gateways = append(gateways, v)
	}
	return gateways
}

// deployHandlers deploys the gateways of the handlers of ExposureClasses, and deletes those of former ones.
func (s *run) deployHandlers(ctx context.Context) error {
	gateways := s.handlerGateways()
	var errs []error
	for _, v := range gateways {
		if err := s.deployHandler(ctx, v); err != nil {
			errs = append(errs, fmt.Errorf("handler %q: %w", v.Handler, err))
		}
	}
	return errors.Join(append(errs, s.deleteUnusedHandlers(ctx, gateways))...)
}

func (s *run) deployHandler(ctx context.Context, v gateway.Values) error {
	// A namespace of something else would be deleted with the handler.
	namespace := &corev1.Namespace{}
	err := s.SeedAPI.Get(ctx, client.ObjectKey{Name: v.Namespace}, namespace)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read Namespace %q: %w", v.Namespace, err)
	case err == nil && namespace.Labels[constants.ExposureClassHandlerName] != v.Handler:
		return fmt.Errorf("Namespace %q exists, and is not that of this handler", v.Namespace)
	case err == nil && namespace.DeletionTimestamp != nil:
		return fmt.Errorf("Namespace %q is being deleted", v.Namespace)
	}
	if err := systemcomponents.KeepLoadBalancerClass(ctx, s.SeedAPI, &v); err != nil {
		return err
	}
	objects := gateway.HandlerObjects(v)
	if workload.Autoscaled(s.seed) {
		objects = append(objects, workload.Autoscalers(objects, func(string) workload.Autoscaling { return workload.Autoscaling{} })...)
	}
	if err := s.apply(ctx, objects...); err != nil {
		return err
	}
	return s.deleteFormerServices(ctx, v)
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

// deleteUnusedHandlers deletes the gateways of handlers that the configuration does not have, or has in another namespace. Those that shoots
// still use stay: the shoots get another one when they are reconciled.
func (s *run) deleteUnusedHandlers(ctx context.Context, desired []gateway.Values) error {
	unused, err := s.handlerNamespaces(ctx)
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
			logf.FromContext(ctx).Info("Keeping the gateway of a former handler of ExposureClasses", "namespace", namespace.Name,
				"route", client.ObjectKeyFromObject(route).String())
			continue
		}
		if err := s.deleteHandler(ctx, namespace); err != nil {
			return err
		}
	}
	return nil
}

// deleteHandlers deletes the gateways of all handlers.
func (s *run) deleteHandlers(ctx context.Context) error {
	namespaces, err := s.handlerNamespaces(ctx)
	if err != nil {
		return err
	}
	for i := range namespaces {
		if err := s.deleteHandler(ctx, &namespaces[i]); err != nil {
			return err
		}
	}
	return nil
}

// handlerNamespaces returns the namespaces of all handlers, also of former ones.
func (s *run) handlerNamespaces(ctx context.Context) ([]corev1.Namespace, error) {
	namespaces := &corev1.NamespaceList{}
	if err := s.SeedAPI.List(ctx, namespaces, client.MatchingLabels{constants.GardenRole: constants.GardenRoleExposureClassHandler},
		client.HasLabels{constants.ExposureClassHandlerName}); err != nil {
		return nil, fmt.Errorf("list Namespaces of handlers: %w", err)
	}
	return namespaces.Items, nil
}

// deleteHandler deletes what a handler has. The namespace is last: as long as it exists, the binding is found again.
func (s *run) deleteHandler(ctx context.Context, namespace *corev1.Namespace) error {
	for _, object := range []client.Object{gateway.HandlerBinding(namespace.Name), namespace} {
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
