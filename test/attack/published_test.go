package attack

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gardenrbac"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/test/env"
)

// A member has the role of the documents, with which ConfigMaps, Secrets and events of the project can be written. What gardenlets publish
// there, such as the CA that users of a shoot trust, and what components report, must not come from a member.
func TestMemberDoesNotForgeWhatIsPublished(t *testing.T) {
	e := env.Start(t, env.Lenient())
	ctx := t.Context()
	objects := gardenrbac.Objects()
	if err := kube.Apply(ctx, e.Client, "test", objects...); err != nil {
		t.Fatal(err)
	}
	project := namespace(attackers)
	project.Labels = map[string]string{constants.GardenRole: constants.GardenRoleProject}
	const memberRole = "gardener.cloud:system:project-member-aggregation"
	for _, object := range []client.Object{
		project,
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: "member"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: memberRole},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "member@example.com"}},
		},
		// The authorizer of gardener-admission-controller, which does not run here, allows this.
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: "gardenlet"},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"configmaps", "events", "secrets"}, Verbs: []string{"*"},
			}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: "gardenlet"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "gardenlet"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: constants.SeedUserNamePrefix + seedName}},
		},
	} {
		if err := e.Client.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	as := func(user string, groups ...string) client.Client {
		t.Helper()
		config := rest.CopyConfig(e.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
		c, err := client.New(config, client.Options{Scheme: e.Scheme})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	member, gardenlet := as("member@example.com"), as(constants.SeedUserNamePrefix+seedName, constants.SeedsGroup)

	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: attackers, Name: name} }
	labelled := func(name, role string) metav1.ObjectMeta {
		m := meta(name)
		m.Labels = map[string]string{constants.GardenRole: role}
		return m
	}
	shoot := corev1.ObjectReference{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Namespace: attackers, Name: "first"}
	configMap := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: attackers, Name: "mine"}
	now := metav1.NewMicroTime(time.Now())
	newEvent := func(name, reporter string, about corev1.ObjectReference) *eventsv1.Event {
		return &eventsv1.Event{
			ObjectMeta: meta(name), EventTime: now, ReportingController: reporter, ReportingInstance: "x", Action: "A", Reason: "B", Type: "Normal", Regarding: about,
		}
	}
	// Policies are compiled soon after they are created.
	for end := time.Now().Add(patience); ; {
		err := member.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta("probe.ca-cluster")}, client.DryRunAll)
		if apierrors.IsForbidden(err) && isEventPolicyActive(ctx, member, newEvent("probe", "gardenlet", configMap)) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the policies are not in force: %v", err)
		}
	}

	for name, object := range map[string]client.Object{
		"ConfigMap with the CA":                &corev1.ConfigMap{ObjectMeta: meta("first.ca-cluster")},
		"ConfigMap with the CA of kubelets":    &corev1.ConfigMap{ObjectMeta: meta("first.ca-kubelet")},
		"Secret with the CA":                   &corev1.Secret{ObjectMeta: meta("first.ca-cluster")},
		"SSH key":                              &corev1.Secret{ObjectMeta: meta("first.ssh-keypair")},
		"old SSH key":                          &corev1.Secret{ObjectMeta: meta("first.ssh-keypair.old")},
		"monitoring":                           &corev1.Secret{ObjectMeta: meta("first.monitoring")},
		"kubeconfig":                           &corev1.Secret{ObjectMeta: meta("first.kubeconfig")},
		"CA by its label":                      &corev1.ConfigMap{ObjectMeta: labelled("other", constants.GardenRoleCACluster)},
		"SSH key by its label":                 &corev1.Secret{ObjectMeta: labelled("other", constants.GardenRoleSSHKeyPair)},
		"event about a Shoot":                  newEvent("about-shoot", "mine", shoot),
		"event of a gardenlet":                 newEvent("of-gardenlet", "gardenlet-shoot", configMap),
		"event of gardener-controller-manager": newEvent("of-manager", "gardener-controller-manager", configMap),
		"core event about a Shoot":             &corev1.Event{ObjectMeta: meta("core-about-shoot"), InvolvedObject: shoot, Source: corev1.EventSource{Component: "mine"}},
		"core event of a gardenlet":            &corev1.Event{ObjectMeta: meta("core-of-gardenlet"), InvolvedObject: configMap, Source: corev1.EventSource{Component: "gardenlet"}},
		"core event with a reporter":           &corev1.Event{ObjectMeta: meta("core-reporter"), InvolvedObject: configMap, ReportingController: "gardenlet", ReportingInstance: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			copyOf := func() client.Object { return object.DeepCopyObject().(client.Object) } //nolint:forcetypeassert // a copy has its original's type
			refused := func(verb string, err error) {
				t.Helper()
				if !apierrors.IsForbidden(err) {
					t.Errorf("a member can %s it: %v", verb, err)
				}
			}
			refused("create", member.Create(ctx, copyOf()))
			published := copyOf()
			if err := gardenlet.Create(ctx, published); err != nil {
				t.Fatalf("a gardenlet cannot create it: %v", err)
			}
			stolen := published.DeepCopyObject().(client.Object) //nolint:forcetypeassert // as above
			stolen.SetLabels(map[string]string{"x": "y"})
			if _, isEvent := object.(*eventsv1.Event); !isEvent {
				refused("update", member.Update(ctx, stolen))
			}
			refused("patch", member.Patch(ctx, stolen, client.MergeFrom(published)))
			refused("delete", member.Delete(ctx, copyOf()))
			refused("delete all", member.DeleteAllOf(ctx, copyOf(), client.InNamespace(attackers)))
			before := published.DeepCopyObject().(client.Object) //nolint:forcetypeassert // as above
			published.SetAnnotations(map[string]string{"x": "y"})
			if err := gardenlet.Patch(ctx, published, client.MergeFrom(before)); err != nil {
				t.Errorf("a gardenlet cannot patch it: %v", err)
			}
			if err := e.Client.Delete(ctx, copyOf()); err != nil {
				t.Errorf("an operator cannot delete it: %v", err)
			}
		})
	}
	// Members can write what is theirs.
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta("mine")}, &corev1.Secret{ObjectMeta: meta("ca-cluster")}, &corev1.Secret{ObjectMeta: meta("a.b.ca-clusters")},
		&corev1.Event{ObjectMeta: meta("core-mine"), InvolvedObject: configMap, Source: corev1.EventSource{Component: "mine"}},
	} {
		if err := member.Create(ctx, object); err != nil {
			t.Errorf("a member cannot create a %T of its own: %v", object, err)
			continue
		}
		before := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // as above
		object.SetLabels(map[string]string{"x": "y"})
		if err := member.Patch(ctx, object, client.MergeFrom(before)); err != nil {
			t.Errorf("a member cannot patch a %T of its own: %v", object, err)
		}
	}
	if err := member.Delete(ctx, &corev1.ConfigMap{ObjectMeta: meta("mine")}); err != nil {
		t.Errorf("a member cannot delete a ConfigMap of its own: %v", err)
	}
}

// isEventPolicyActive says whether an event is refused by the policy. The role allows events of the core group.
func isEventPolicyActive(ctx context.Context, member client.Client, event *eventsv1.Event) bool {
	err := member.Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: event.Namespace, Name: event.Name}, InvolvedObject: event.Regarding,
		Source: corev1.EventSource{Component: event.ReportingController},
	}, client.DryRunAll)
	return apierrors.IsForbidden(err)
}
