package lifecycle

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/pkg/secrets"
)

func (h *hosted) orders(always bool) extensionobject.Values {
	return extensionobject.Values{Client: h.SeedClient, Clock: h.Clock, Always: always}
}

// extensionTasks has extensions do what they add to the cluster: before the API server is deployed, when it works, or when there are
// nodes, as they are registered.
func (h *hosted) extensionTasks() []flow.Task {
	tasks := make([]flow.Task, 0, len(h.extensions)+len(h.stale))
	for _, e := range h.extensions {
		t := lasting(e.timeout(), task("extension-"+e.typ, "Waiting for extension "+e.typ, func(ctx context.Context) error {
			return h.extend(ctx, e)
		}, "namespace", "cluster"))
		switch {
		case h.asleep:
		case e.reconcile == corev1beta1.BeforeKubeAPIServer:
		case e.reconcile == corev1beta1.AfterWorker:
			t.After = append(t.After, "kube-apiserver-ready")
			t.AfterIfPresent = append(t.AfterIfPresent, "worker")
		default:
			t.After = append(t.After, "kube-apiserver-ready")
		}
		tasks = append(tasks, t)
	}
	for _, e := range h.stale {
		tasks = append(tasks, h.staleTask(e))
	}
	return tasks
}

// staleTask has an extension take away what nobody asks for any more. What it has put into the cluster can go only while that is awake, so
// nobody waits for it in one that sleeps.
func (h *hosted) staleTask(e extensionOrder) flow.Task {
	if !h.asleep {
		return h.dropExtension(e, "cluster", "kube-apiserver-ready")
	}
	return task("extension-"+e.typ+"-gone", "Ending extension "+e.typ, func(ctx context.Context) error {
		return extensionobject.Delete(ctx, h.orders(true), e.object(h.namespace))
	}, "cluster")
}

// beforeAPIServer are the tasks that the API server waits for.
func (h *hosted) beforeAPIServer() []string {
	var list []string
	for _, e := range h.extensions {
		if e.reconcile == corev1beta1.BeforeKubeAPIServer {
			list = append(list, "extension-"+e.typ)
		}
	}
	return list
}

func (h *hosted) extend(ctx context.Context, e extensionOrder) error {
	obj := e.object(h.namespace)
	if err := extensionobject.Order(ctx, h.orders(true), obj, func(obj *extensionsv1alpha1.Extension) {
		obj.Spec.DefaultSpec = ordered(obj.Spec.Class, e.typ, e.config)
	}); err != nil {
		return err
	}
	return extensionobject.Await(ctx, h.orders(true), obj)
}

func (e extensionOrder) object(namespace string) *extensionsv1alpha1.Extension {
	return &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: e.typ}}
}

// ordered is the part of a spec that all extension resources have.
func ordered(class *extensionsv1alpha1.ExtensionClass, typ string, config *runtime.RawExtension) extensionsv1alpha1.DefaultSpec {
	return extensionsv1alpha1.DefaultSpec{Type: typ, Class: class, ProviderConfig: config}
}

// infrastructure are the tasks for what is around the nodes.
func (h *hosted) infrastructure() []flow.Task {
	infrastructure := lasting(extensionTimeout, task("infrastructure", "Waiting for the infrastructure", h.orderInfrastructure, "credentials", "cluster"))
	infrastructure.AfterIfPresent = []string{"cloudprovider"}
	tasks := []flow.Task{infrastructure}
	if h.asleep {
		return tasks
	}
	return append(tasks,
		lasting(extensionTimeout, task("control-plane", "Waiting for the control plane of the infrastructure", h.orderControlPlane,
			"infrastructure", "resource-manager-ready")),
		lasting(extensionTimeout, task("network", "Waiting for the network", h.orderNetwork, "resource-manager-ready")),
	)
}

func (w *world) infrastructureObject() *extensionsv1alpha1.Infrastructure {
	return &extensionsv1alpha1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.shoot.Name}}
}

func (w *world) controlPlaneObject() *extensionsv1alpha1.ControlPlane {
	return &extensionsv1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.shoot.Name}}
}

func (w *world) networkObject() *extensionsv1alpha1.Network {
	return &extensionsv1alpha1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.shoot.Name}}
}

func (w *world) providerSecret() corev1.SecretReference {
	return corev1.SecretReference{Namespace: w.namespace, Name: constants.SecretNameCloudProvider}
}

func (h *hosted) orderInfrastructure(ctx context.Context) error {
	obj, provider := h.infrastructureObject(), h.shoot.Spec.Provider
	if err := extensionobject.Order(ctx, h.orders(true), obj, func(obj *extensionsv1alpha1.Infrastructure) {
		obj.Spec.DefaultSpec = ordered(obj.Spec.Class, provider.Type, provider.InfrastructureConfig)
		obj.Spec.Region, obj.Spec.SecretRef = h.shoot.Spec.Region, h.providerSecret()
		if key := h.set.Current(constants.SecretNameSSHKeyPair); key != nil {
			obj.Spec.SSHPublicKey = key.Data[secrets.DataKeySSHAuthorizedKeys]
		}
	}); err != nil {
		return err
	}
	if err := extensionobject.Await(ctx, h.orders(true), obj); err != nil {
		return err
	}
	if err := h.publishNetworks(ctx, obj); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.infra = obj
	return nil
}

// infrastructureStatus is what the extension for the infrastructure tells the others.
func (h *hosted) infrastructureStatus() *runtime.RawExtension {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.infra == nil {
		return nil
	}
	return h.infra.Status.ProviderStatus
}

func (h *hosted) orderControlPlane(ctx context.Context) error {
	obj, provider := h.controlPlaneObject(), h.shoot.Spec.Provider
	if err := extensionobject.Order(ctx, h.orders(true), obj, func(obj *extensionsv1alpha1.ControlPlane) {
		obj.Spec.DefaultSpec = ordered(obj.Spec.Class, provider.Type, provider.ControlPlaneConfig)
		obj.Spec.Region, obj.Spec.SecretRef, obj.Spec.InfrastructureProviderStatus = h.shoot.Spec.Region, h.providerSecret(), h.infrastructureStatus()
	}); err != nil {
		return err
	}
	return extensionobject.Await(ctx, h.orders(true), obj)
}

func (h *hosted) orderNetwork(ctx context.Context) error {
	obj, networking := h.networkObject(), h.shoot.Spec.Networking
	if err := extensionobject.Order(ctx, h.orders(true), obj, func(obj *extensionsv1alpha1.Network) {
		obj.Spec.DefaultSpec = ordered(obj.Spec.Class, deref(networking.Type), networking.ProviderConfig)
		obj.Spec.PodCIDR, obj.Spec.ServiceCIDR = deref(networking.Pods), deref(networking.Services)
		obj.Spec.IPFamilies = nil
		for _, family := range networking.IPFamilies {
			obj.Spec.IPFamilies = append(obj.Spec.IPFamilies, extensionsv1alpha1.IPFamily(family))
		}
	}); err != nil {
		return err
	}
	return extensionobject.Await(ctx, h.orders(true), obj)
}

// sorted puts tasks into an order that does not depend on that of a map.
func sorted(tasks []flow.Task) []flow.Task {
	slices.SortFunc(tasks, func(a, b flow.Task) int { return cmp.Compare(a.ID, b.ID) })
	return tasks
}
