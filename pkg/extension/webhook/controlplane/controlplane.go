// Package controlplane is the webhook with which an extension changes what the gardenlet deploys for the control planes of its shoots: flags of
// processes, containers beside them, and the configuration of nodes.
//
// An author fills in an Ensurer, and adds the Webhook to a webhook.Server:
//
//	webhook.Add(mgr, webhook.Options{Name: "provider-example", Webhooks: []webhook.Webhook{
//		controlplane.Webhook(mgr, controlplane.Options{Type: "example", Ensurer: controlplane.Ensurer{KubeControllerManager: external}}),
//	}, ...})
//
// It is called for each change of an object, but for none that is being deleted, nor when a deletion is confirmed: while the extension does not run,
// nothing is deployed, and everything can be deleted. What it adds is not removed by the gardenlet, so an Ensurer has to
// replace what it has added before: the helpers SetFlag, SetContainer and SetPolicy do. It reads Clusters, if an Ensurer asks for one.
package controlplane

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/webhook"
)

// Name is the name of the webhook.
const Name = "controlplane"

// autoscalerKind is the kind VerticalPodAutoscaler.
var autoscalerKind = schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}

// Shoot is the one whose control plane is deployed.
type Shoot struct {
	// Namespace is that of the control plane.
	Namespace string
	reader    client.Reader
}

// Cluster reads the Cluster.
func (s Shoot) Cluster(ctx context.Context) (*extension.Cluster, error) {
	cluster, err := extension.ReadCluster(ctx, s.reader, s.Namespace)
	if err == nil && cluster == nil {
		err = fmt.Errorf("there is no Cluster %q", s.Namespace)
	}
	return cluster, err
}

// EnsureDeployment changes a Deployment of a control plane.
type EnsureDeployment func(context.Context, Shoot, *appsv1.Deployment) error

// Ensurer has a function for each object that an extension changes. What is nil stays as the gardenlet has rendered it.
type Ensurer struct {
	// KubeAPIServer has its flags in the args of the container, all others in the command.
	KubeAPIServer, KubeControllerManager, KubeScheduler, ClusterAutoscaler, MachineControllerManager, VPNSeedServer EnsureDeployment
	// MachineControllerManagerAutoscaler changes the VerticalPodAutoscaler machine-controller-manager-vpa.
	MachineControllerManagerAutoscaler func(context.Context, Shoot, *unstructured.Unstructured) error
	// KubeletFlags returns the flags of the kubelet, KubeletConfiguration changes its configuration, and KernelSettings those of sysctl. They are in the
	// OperatingSystemConfig of nodes.
	KubeletFlags         func(context.Context, Shoot, []string) ([]string, error)
	KubeletConfiguration func(context.Context, Shoot, *KubeletConfiguration) error
	KernelSettings       func(context.Context, Shoot, map[string]string) error
	// OperatingSystemConfig changes anything else of it, also in the one that machines are created with: see its purpose. SetUnit and SetFile help.
	OperatingSystemConfig func(context.Context, Shoot, *extensionsv1alpha1.OperatingSystemConfig) error
}

// deployments are the functions by the name of the Deployment.
func (e Ensurer) deployments() map[string]EnsureDeployment {
	return map[string]EnsureDeployment{
		"kube-apiserver": e.KubeAPIServer, "kube-controller-manager": e.KubeControllerManager, "kube-scheduler": e.KubeScheduler,
		"cluster-autoscaler": e.ClusterAutoscaler, "machine-controller-manager": e.MachineControllerManager, "vpn-seed-server": e.VPNSeedServer,
	}
}

func (e Ensurer) changesNodes() bool {
	return e.KubeletFlags != nil || e.KubeletConfiguration != nil || e.KernelSettings != nil || e.OperatingSystemConfig != nil
}

// conditions leave out what a deletion writes, also that by force and that of the garbage collector: an extension that does not respond must not hold it up.
// The gardenlet confirms the deletion of an OperatingSystemConfig before it requests it. One that stays, as that failed, is changed again with its spec.
var conditions = []admissionregistrationv1.MatchCondition{
	{Name: "not-deleted", Expression: "!has(object.metadata.deletionTimestamp)"},
	{Name: "deletion-not-confirmed", Expression: "oldObject == null || object.spec != oldObject.spec || " +
		"object.metadata.?annotations[?'" + constants.ConfirmationDeletion + "'].orValue('') != 'true'"},
}

// Options configure the webhook.
type Options struct {
	// Type is the type of the infrastructure of its shoots.
	Type string
	// Ensurer changes the objects.
	Ensurer Ensurer
}

// Webhook returns the webhook for the control planes of shoots with an infrastructure, with the documented selectors.
func Webhook(mgr manager.Manager, o Options) webhook.Webhook {
	return webhook.Webhook{
		Name: Name, Handler: &handler{ensurer: o.Ensurer, reader: mgr.GetClient()}, Rules: o.Ensurer.rules(),
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{constants.ShootProvider: o.Type}},
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
			extensionsv1alpha1.LabelMutatedByControlPlaneWebhook: "true",
		}},
		MatchConditions: conditions,
	}
}

// rules are the kinds that an Ensurer changes.
func (e Ensurer) rules() []admissionregistrationv1.RuleWithOperations {
	rule := func(group, version, resource string) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
		}
	}
	var rules []admissionregistrationv1.RuleWithOperations
	for _, ensure := range e.deployments() {
		if ensure != nil {
			rules = append(rules, rule("apps", "v1", "deployments"))
			break
		}
	}
	if e.MachineControllerManagerAutoscaler != nil {
		rules = append(rules, rule(autoscalerKind.Group, autoscalerKind.Version, "verticalpodautoscalers"))
	}
	if e.changesNodes() {
		rules = append(rules, rule(extensionsv1alpha1.SchemeGroupVersion.Group, extensionsv1alpha1.SchemeGroupVersion.Version, "operatingsystemconfigs"))
	}
	return rules
}

type handler struct {
	ensurer Ensurer
	reader  client.Reader
}

// Handle implements admission.Handler.
func (h *handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
		return admission.Allowed("nothing is changed by this operation")
	}
	shoot := Shoot{Namespace: request.Namespace, reader: h.reader}
	switch request.Kind.Kind {
	case "Deployment":
		if ensure := h.ensurer.deployments()[request.Name]; ensure != nil {
			return webhook.Mutate(request, &appsv1.Deployment{}, func(d *appsv1.Deployment) error { return ensure(ctx, shoot, d) })
		}
	case autoscalerKind.Kind:
		if ensure := h.ensurer.MachineControllerManagerAutoscaler; ensure != nil && request.Name == autoscalerName {
			return webhook.Mutate(request, &unstructured.Unstructured{}, func(u *unstructured.Unstructured) error { return ensure(ctx, shoot, u) })
		}
	case extensionsv1alpha1.OperatingSystemConfigResource:
		if h.ensurer.changesNodes() {
			return webhook.Mutate(request, &extensionsv1alpha1.OperatingSystemConfig{}, func(osc *extensionsv1alpha1.OperatingSystemConfig) error {
				return h.ensurer.operatingSystemConfig(ctx, shoot, osc)
			})
		}
	}
	return admission.Allowed("the extension does not change it")
}
