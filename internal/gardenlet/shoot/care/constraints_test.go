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
	authority := func(name string, left time.Duration) metav1.PartialObjectMetadata {
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
	asleep := func(s *corev1beta1.Shoot) {
		s.Spec.Hibernation, s.Status.Hibernated = &corev1beta1.Hibernation{Enabled: new(true)}, true
	}
	for name, tc := range map[string]struct {
		change func(*corev1beta1.Shoot, *observation)
		// want are the constraints that differ from those of a cluster in which nothing is in the way. An empty one is not there.
		want statuses
	}{
		"nothing is in the way": {change: func(*corev1beta1.Shoot, *observation) {}},
		"a webhook of users":    {change: func(_ *corev1beta1.Shoot, o *observation) { o.validating = append(o.validating, validator) }, want: statuses{hibernation: no, precond: no}},
		"a webhook of ours": {change: func(_ *corev1beta1.Shoot, o *observation) {
			o.validating = append(o.validating, labelled(resourcesv1alpha1.ManagedBy, "gardener"))
		}},
		"a webhook that its owner vouches for": {change: func(_ *corev1beta1.Shoot, o *observation) {
			o.validating = append(o.validating, labelled("remediation.webhook.shoot.gardener.cloud/exclude", "true"))
		}},
		"nobody answers": {
			change: func(_ *corev1beta1.Shoot, o *observation) { o.unavailable, o.conversions = errors.New("x"), nil },
			want:   statuses{hibernation: unknown, precond: unknown, converted: "", preserved: "", dual: ""},
		},
		"nobody tells of webhooks": {change: func(_ *corev1beta1.Shoot, o *observation) { o.webhooksUnknown = errors.New("x") }, want: statuses{hibernation: unknown, precond: unknown}},
		"an old authority": {change: func(_ *corev1beta1.Shoot, o *observation) {
			o.credentials = append(o.credentials, authority("ca-client", year-time.Hour))
		}, want: statuses{expiring: no}},
		"certificates are renewed by themselves": {change: func(_ *corev1beta1.Shoot, o *observation) {
			o.credentials = append(o.credentials, authority("kube-apiserver", time.Hour), authority("ca", year+time.Hour))
		}},
		"asleep": {
			change: func(s *corev1beta1.Shoot, o *observation) { asleep(s); o.conversions = nil },
			want:   statuses{converted: "", preserved: "", dual: ""},
		},
		"workerless":             {change: func(s *corev1beta1.Shoot, _ *observation) { s.Spec.Provider.Workers = nil }, want: statuses{hibernation: "", preserved: "", dual: ""}},
		"a kind in two versions": {change: func(_ *corev1beta1.Shoot, o *observation) { o.conversions = []string{"things.example.com"} }, want: statuses{converted: no}},
		"a part is ignored":      {change: func(_ *corev1beta1.Shoot, o *observation) { o.resources = append(o.resources, resource("true")) }, want: statuses{ignored: yes}},
		"a part is not ignored":  {change: func(_ *corev1beta1.Shoot, o *observation) { o.resources = append(o.resources, resource("false")) }},
		"a pool waits for its turn": {
			change: func(s *corev1beta1.Shoot, _ *observation) {
				s.Status.InPlaceUpdates = &corev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: &corev1beta1.PendingWorkerUpdates{ManualInPlaceUpdate: []string{"a"}}}
			}, want: statuses{byHand: no},
		},
		"a pool is updated by itself": {change: func(s *corev1beta1.Shoot, _ *observation) {
			s.Status.InPlaceUpdates = &corev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: &corev1beta1.PendingWorkerUpdates{AutoInPlaceUpdate: []string{"a"}}}
		}},
		"a failed machine is kept": {change: func(_ *corev1beta1.Shoot, o *observation) {
			o.machines = []machinev1alpha1.MachineDeployment{{Status: machinev1alpha1.MachineDeploymentStatus{PreservedFailedReplicas: 1}}}
		}, want: statuses{preserved: no}},
		"a node has one family":               {change: func(s *corev1beta1.Shoot, o *observation) { twoFamilies(s); o.nodes = nodes(2, 1) }, want: statuses{dual: no}},
		"all nodes have both":                 {change: func(s *corev1beta1.Shoot, o *observation) { twoFamilies(s); o.nodes = nodes(2, 2) }},
		"ranges of pods are for someone else": {change: func(s *corev1beta1.Shoot, o *observation) { twoFamilies(s); o.nodes = nodes(0) }},
		"one family is wanted":                {change: func(_ *corev1beta1.Shoot, o *observation) { o.nodes = nodes(1) }},
	} {
		t.Run(name, func(t *testing.T) {
			shoot, seen := &corev1beta1.Shoot{}, healthy()
			shoot.Spec.Provider.Workers, seen.conversions = []corev1beta1.Worker{{Name: "a"}}, []string{}
			tc.change(shoot, seen)
			got := statuses{}
			for _, constraint := range constraints(shoot, seen, now) {
				got[constraint.Type] = constraint.Status
				if constraint.Reason == "" || constraint.Message == "" {
					t.Errorf("%q does not say why", constraint.Type)
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

// What is in order is not spoken of, and of what nobody knows now, the last word counts.
func TestConstrain(t *testing.T) {
	const ignored, dual, hibernation = corev1beta1.ShootHasIgnoredManagedResources, corev1beta1.ShootDualStackNodesMigrationReady, corev1beta1.ShootHibernationPossible
	condition := func(typ corev1beta1.ConditionType, status corev1beta1.ConditionStatus) corev1beta1.Condition {
		return corev1beta1.Condition{Type: typ, Status: status}
	}
	before := []corev1beta1.Condition{condition(dual, corev1beta1.ConditionFalse), condition(ignored, corev1beta1.ConditionTrue)}
	for name, tc := range map[string]struct {
		wanted []corev1beta1.Condition
		want   map[corev1beta1.ConditionType]corev1beta1.ConditionStatus
	}{
		"nothing is known": {want: map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{dual: corev1beta1.ConditionFalse, ignored: corev1beta1.ConditionTrue}},
		"all is in order": {
			wanted: []corev1beta1.Condition{condition(dual, corev1beta1.ConditionTrue), condition(ignored, corev1beta1.ConditionFalse), condition(hibernation, corev1beta1.ConditionTrue)},
			want:   map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{hibernation: corev1beta1.ConditionTrue},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{}
			for _, c := range constrain(before, tc.wanted, now) {
				got[c.Type] = c.Status
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("constrain() (-want +got):\n%s", diff)
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
	seen := &observation{access: &shootAccess{Client: shoot}}
	if err := seen.readConversions(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"two"}, seen.conversions); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}
