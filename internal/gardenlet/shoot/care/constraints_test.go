package care

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

func TestConstraints(t *testing.T) {
	const (
		yes, no, unknown     = corev1beta1.ConditionTrue, corev1beta1.ConditionFalse, corev1beta1.ConditionUnknown
		hibernation, precond = corev1beta1.ShootHibernationPossible, corev1beta1.ShootMaintenancePreconditionsSatisfied
		expiring, converted  = corev1beta1.ShootCACertificateValiditiesAcceptable, corev1beta1.ShootCRDsWithProblematicConversionWebhooks
		byHand, ignored      = corev1beta1.ShootManualInPlaceWorkersUpdated, corev1beta1.ShootHasIgnoredManagedResources
		preserved, dual      = corev1beta1.ShootPreservedFailedMachinesAbsent, corev1beta1.ShootDualStackNodesMigrationReady
		year                 = 365 * 24 * time.Hour
	)
	type statuses map[corev1beta1.ConditionType]corev1beta1.ConditionStatus
	validator := admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "users"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "w", Rules: []admissionregistrationv1.RuleWithOperations{about("", admissionregistrationv1.Create, "pods")},
		}},
	}
	labelled := func(key, value string) admissionregistrationv1.ValidatingWebhookConfiguration {
		c := *validator.DeepCopy()
		c.Labels = map[string]string{key: value}
		return c
	}
	ca := func(name string, left time.Duration) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			"name": name, "valid-until-time": strconv.FormatInt(now.Add(left).Unix(), 10),
		}}}
	}
	resource := func(ignore string) resourcesv1alpha1.ManagedResource {
		return resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Name: "x", Annotations: map[string]string{resourcesv1alpha1.Ignore: ignore}}}
	}
	nodes := func(ranges ...int) (list []corev1.Node) {
		for _, n := range ranges {
			list = append(list, corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: make([]string, n)}})
		}
		return list
	}
	twoFamilies := func(s *corev1beta1.Shoot) {
		s.Spec.Networking = &corev1beta1.Networking{IPFamilies: []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv4, corev1beta1.IPFamilyIPv6}}
	}
	hibernate := func(s *corev1beta1.Shoot) {
		s.Spec.Hibernation, s.Status.Hibernated = &corev1beta1.Hibernation{Enabled: new(true)}, true
	}
	for name, tc := range map[string]struct {
		change func(*corev1beta1.Shoot, *observed)
		// want are the constraints that differ from those of a cluster without problems. An empty one is omitted.
		want statuses
	}{
		"no problem":         {change: func(*corev1beta1.Shoot, *observed) {}},
		"a webhook of users": {change: func(_ *corev1beta1.Shoot, o *observed) { o.validating = append(o.validating, validator) }, want: statuses{hibernation: no, precond: no}},
		"a webhook of Gardener": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.validating = append(o.validating, labelled(resourcesv1alpha1.ManagedBy, "gardener"))
		}},
		"a webhook that its owner has excluded": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.validating = append(o.validating, labelled("remediation.webhook.shoot.gardener.cloud/exclude", "true"))
		}},
		"the API server does not respond": {
			change: func(_ *corev1beta1.Shoot, o *observed) { o.apiServerError, o.conversionCRDs = errors.New("x"), nil },
			want:   statuses{hibernation: unknown, precond: unknown, converted: "", preserved: "", dual: ""},
		},
		"webhooks cannot be listed": {change: func(_ *corev1beta1.Shoot, o *observed) { o.webhooksError = errors.New("x") }, want: statuses{hibernation: unknown, precond: unknown}},
		"a CA certificate expires soon": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.credentials = append(o.credentials, ca("ca-client", year-time.Hour))
		}, want: statuses{expiring: no}},
		"other certificates are renewed in time": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.credentials = append(o.credentials, ca("kube-apiserver", time.Hour), ca("ca", year+time.Hour))
		}},
		"hibernated": {
			change: func(s *corev1beta1.Shoot, o *observed) { hibernate(s); o.conversionCRDs = nil },
			want:   statuses{converted: ""},
		},
		"workerless":                     {change: func(s *corev1beta1.Shoot, _ *observed) { s.Spec.Provider.Workers = nil }, want: statuses{hibernation: "", preserved: "", dual: ""}},
		"a CRD with two stored versions": {change: func(_ *corev1beta1.Shoot, o *observed) { o.conversionCRDs = []string{"things.example.com"} }, want: statuses{converted: no}},
		"a ManagedResource is ignored": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.managedResources = append(o.managedResources, resource("true"))
		}, want: statuses{ignored: yes}},
		"a ManagedResource is ignored, by another value": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.managedResources = append(o.managedResources, resource("1"))
		}, want: statuses{ignored: yes}},
		"a ManagedResource has an invalid value": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.managedResources = append(o.managedResources, resource("yes"))
		}},
		"a ManagedResource is not ignored": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.managedResources = append(o.managedResources, resource("false"))
		}},
		"a pool waits for a manual update": {
			change: func(s *corev1beta1.Shoot, _ *observed) {
				s.Status.InPlaceUpdates = &corev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: &corev1beta1.PendingWorkerUpdates{ManualInPlaceUpdate: []string{"a"}}}
			}, want: statuses{byHand: no},
		},
		"a pool is updated automatically": {change: func(s *corev1beta1.Shoot, _ *observed) {
			s.Status.InPlaceUpdates = &corev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: &corev1beta1.PendingWorkerUpdates{AutoInPlaceUpdate: []string{"a"}}}
		}},
		"a failed machine is preserved": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.machineDeployments = []machinev1alpha1.MachineDeployment{{Status: machinev1alpha1.MachineDeploymentStatus{PreservedFailedReplicas: 1}}}
		}, want: statuses{preserved: no}},
		"a node has one family":   {change: func(s *corev1beta1.Shoot, o *observed) { twoFamilies(s); o.nodes = nodes(2, 1) }, want: statuses{dual: no}},
		"all nodes have both":     {change: func(s *corev1beta1.Shoot, o *observed) { twoFamilies(s); o.nodes = nodes(2, 2) }},
		"nodes have no pod CIDRs": {change: func(s *corev1beta1.Shoot, o *observed) { twoFamilies(s); o.nodes = nodes(0) }},
		"a single-stack cluster":  {change: func(_ *corev1beta1.Shoot, o *observed) { o.nodes = nodes(1) }},
	} {
		t.Run(name, func(t *testing.T) {
			shoot, o := &corev1beta1.Shoot{}, healthyControlPlane()
			shoot.Spec.Provider.Workers, o.conversionCRDs = []corev1beta1.Worker{{Name: "a"}}, []string{}
			tc.change(shoot, o)
			got := statuses{}
			for _, constraint := range constraints(shoot, o, now) {
				got[constraint.Type] = constraint.Status
				if constraint.Reason == "" || constraint.Message == "" {
					t.Errorf("%q has no reason or no message", constraint.Type)
				}
			}
			want := statuses{hibernation: yes, precond: yes, expiring: yes, converted: yes, byHand: yes, ignored: no, preserved: yes, dual: yes}
			for typ, status := range tc.want {
				if want[typ] = status; status == "" {
					delete(want, typ)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("constraints() (-want +got):\n%s", diff)
			}
		})
	}
}

// Constraints without a problem are omitted, and those that cannot be checked now stay as they are.
func TestMergeConstraints(t *testing.T) {
	const ignored, dual, hibernation = corev1beta1.ShootHasIgnoredManagedResources, corev1beta1.ShootDualStackNodesMigrationReady, corev1beta1.ShootHibernationPossible
	condition := func(typ corev1beta1.ConditionType, status corev1beta1.ConditionStatus) corev1beta1.Condition {
		return corev1beta1.Condition{Type: typ, Status: status}
	}
	before := []corev1beta1.Condition{condition(dual, corev1beta1.ConditionFalse), condition(ignored, corev1beta1.ConditionTrue)}
	for name, tc := range map[string]struct {
		constraints []corev1beta1.Condition
		want        map[corev1beta1.ConditionType]corev1beta1.ConditionStatus
	}{
		"nothing can be checked": {want: map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{dual: corev1beta1.ConditionFalse, ignored: corev1beta1.ConditionTrue}},
		"no problem": {
			constraints: []corev1beta1.Condition{condition(dual, corev1beta1.ConditionTrue), condition(ignored, corev1beta1.ConditionFalse), condition(hibernation, corev1beta1.ConditionTrue)},
			want:        map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{hibernation: corev1beta1.ConditionTrue},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{}
			for _, c := range mergeConstraints(before, tc.constraints, now) {
				got[c.Type] = c.Status
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("mergeConstraints() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadConversions(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kind := func(name string, strategy apiextensionsv1.ConversionStrategyType, stored ...string) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: stored},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: strategy}},
		}
	}
	plain := kind("plain", "", "v1", "v2")
	plain.Spec.Conversion = nil
	shoot := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		plain, kind("one", apiextensionsv1.WebhookConverter, "v1"), kind("same", apiextensionsv1.NoneConverter, "v1", "v2"), kind("two", apiextensionsv1.WebhookConverter, "v1", "v2"),
	).Build()
	o := &observed{shootClient: &fakeShoot{Client: shoot}}
	if err := o.readConversionCRDs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"two"}, o.conversionCRDs); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}
