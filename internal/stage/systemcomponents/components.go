package systemcomponents

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcddruidconfigv1alpha1 "gardener.cloud/gardener/api/config/etcddruid/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/etcddruid"
	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
)

// autoscalerDeployments are the names of the Deployments of the Vertical Pod Autoscaler.
var autoscalerDeployments = verticalpodautoscaler.Parts()

// Components are the objects whose health is not in the status of a ManagedResource: the tasks deploy them without one. They
// have kind, namespace and name only.
func Components(autoscaled bool) []client.Object {
	deployment := func(namespace, name string) client.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	components := []client.Object{
		deployment(constants.GardenNamespace, resourcemanager.Name), deployment(constants.GardenNamespace, etcddruid.Name),
		deployment(gateway.Namespace, gateway.Name), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: gateway.Namespace, Name: gateway.Name}},
	}
	if autoscaled {
		for _, name := range autoscalerDeployments {
			components = append(components, deployment(constants.GardenNamespace, name))
		}
	}
	return components
}

func (in *Inputs) deployResourceManager(ctx context.Context) error {
	_, others, err := in.resourceManagerObjects()
	if err != nil {
		return err
	}
	return in.deploy(ctx, others...)
}

// awaitResourceManager waits for the pods, and updates the mutating webhooks if they exist: while these have the CA of before, which may have expired, the API server
// does not trust the pods, and refuses the other components.
func (in *Inputs) awaitResourceManager(ctx context.Context) error {
	if err := in.awaitDeployment(ctx, resourcemanager.Name); err != nil {
		return err
	}
	return in.updateMutatingWebhooks(ctx)
}

func (in *Inputs) updateMutatingWebhooks(ctx context.Context) error {
	existing := &metav1.PartialObjectMetadataList{} // a gardenlet may list them, and not get one
	existing.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfigurationList"))
	if err := in.API.List(ctx, existing); err != nil {
		return fmt.Errorf("list MutatingWebhookConfigurations: %w", err)
	}
	webhooks, _, err := in.resourceManagerObjects()
	if err != nil {
		return err
	}
	webhooks = slices.DeleteFunc(webhooks, func(webhook client.Object) bool {
		_, mutating := webhook.(*admissionregistrationv1.MutatingWebhookConfiguration)
		return !mutating || !slices.ContainsFunc(existing.Items, func(e metav1.PartialObjectMetadata) bool { return e.Name == webhook.GetName() })
	})
	return in.apply(ctx, webhooks...)
}

func (in *Inputs) deployResourceManagerWebhooks(ctx context.Context) error {
	webhooks, _, err := in.resourceManagerObjects()
	if err != nil {
		return err
	}
	return in.apply(ctx, webhooks...)
}

// deleteResourceManager deletes the webhooks first, as they fail without the pods.
func (in *Inputs) deleteResourceManager(ctx context.Context) error {
	webhooks, others, err := in.forDeletion().resourceManagerObjects()
	if err != nil {
		return err
	}
	return in.destroy(ctx, append(others, webhooks...)...)
}

// resourceManagerObjects returns the webhook configurations of gardener-resource-manager, and all its other objects.
func (in *Inputs) resourceManagerObjects() (webhooks, others []client.Object, err error) {
	values, err := in.ResourceManager()
	if err != nil {
		return nil, nil, err
	}
	values.Config.Webhooks.PodKubeAPIServerLoadBalancing.Enabled = in.TerminateTLS
	objects, err := resourcemanager.Objects(values)
	for _, object := range objects {
		switch object.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration:
			webhooks = append(webhooks, object)
		default:
			others = append(others, object)
		}
	}
	return webhooks, others, err
}

func (in *Inputs) deployEtcdDruid(ctx context.Context) error {
	objects, err := in.etcdDruidObjects()
	if err != nil {
		return err
	}
	return in.deploy(ctx, objects...)
}

func (in *Inputs) awaitEtcdDruid(ctx context.Context) error {
	return in.awaitDeployment(ctx, etcddruid.Name)
}

func (in *Inputs) deleteEtcdDruid(ctx context.Context) error {
	objects, err := in.forDeletion().etcdDruidObjects()
	if err != nil {
		return err
	}
	return in.destroy(ctx, objects...)
}

func (in *Inputs) etcdDruidObjects() ([]client.Object, error) {
	config := etcddruidconfigv1alpha1.EtcdDruidConfiguration{
		Images: etcddruidconfigv1alpha1.Images{Etcd: in.Images.Etcd, BackupRestore: in.Images.Gardener},
	}
	config.Controllers.Etcd.ConcurrentSyncs = in.EtcdWorkers
	return etcddruid.Objects(etcddruid.Values{Namespace: constants.GardenNamespace, Image: in.Images.Gardener, Replicas: in.Replicas, Config: config})
}

func (in *Inputs) deployGateway(ctx context.Context) error {
	v := in.gatewayValues()
	if err := KeepLoadBalancerClass(ctx, in.API, &v); err != nil {
		return err
	}
	return in.deploy(ctx, gateway.Objects(v)...)
}

// KeepLoadBalancerClass sets the class of the load balancer of a gateway to that of its Service, if that exists: Kubernetes refuses another one.
func KeepLoadBalancerClass(ctx context.Context, api client.Reader, v *gateway.Values) error {
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: cmp.Or(v.Namespace, gateway.Namespace), Name: cmp.Or(v.ServiceName, gateway.Name)}
	if err := api.Get(ctx, key, service); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Service %q: %w", key, err)
	} else if err == nil && service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		v.LoadBalancerClass = service.Spec.LoadBalancerClass
	}
	return nil
}

func (in *Inputs) deleteGateway(ctx context.Context) error {
	return in.destroy(ctx, gateway.Objects(in.forDeletion().gatewayValues())...)
}

func (in *Inputs) gatewayValues() gateway.Values {
	lb := in.LoadBalancer
	return gateway.Values{
		ControllerImage: in.Images.Gardener, ProxyImage: in.Images.HAProxy, Replicas: in.Replicas, ServiceAnnotations: lb.Annotations,
		LoadBalancerClass: lb.Class, ExternalTrafficPolicy: lb.ExternalTrafficPolicy, ProxyProtocol: lb.ProxyProtocol,
		LoadBalancerIP: lb.IP, PodLabels: lb.PodLabels, TerminateTLS: in.TerminateTLS,
	}
}
