// Package admissiontest helps to test admission plugins.
package admissiontest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
	"gardener.cloud/gardener/internal/shoot/dnsname"
)

// Reader returns a reader of some objects, for the garden or for the kube-apiserver.
func Reader(t testing.TB, objs ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	err := errors.Join(
		corev1.AddToScheme(scheme), corev1beta1.AddToScheme(scheme), securityv1alpha1.AddToScheme(scheme),
		seedmanagementv1alpha1.AddToScheme(scheme), operationsv1alpha1.AddToScheme(scheme), settingsv1alpha1.AddToScheme(scheme),
	)
	if err != nil {
		t.Fatal(err)
	}
	value := func(p *string) []string {
		if p == nil {
			return []string{""}
		}
		return []string{*p}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).
		WithIndex(&corev1beta1.Project{}, "spec.namespace", func(o client.Object) []string {
			return value(o.(*corev1beta1.Project).Spec.Namespace)
		}).
		WithIndex(&corev1beta1.Shoot{}, "spec.seedName", func(o client.Object) []string {
			return value(o.(*corev1beta1.Shoot).Spec.SeedName)
		}).
		WithIndex(&corev1beta1.Shoot{}, "status.seedName", func(o client.Object) []string {
			return value(o.(*corev1beta1.Shoot).Status.SeedName)
		}).
		WithIndex(&corev1beta1.Shoot{}, "spec.cloudProfile.Name", func(o client.Object) []string {
			if ref := o.(*corev1beta1.Shoot).Spec.CloudProfile; ref != nil {
				return []string{ref.Name}
			}
			return []string{""}
		}).
		WithIndex(&corev1beta1.Shoot{}, "spec.dns.domain", func(o client.Object) []string {
			return []string{dnsname.Of(o.(*corev1beta1.Shoot).Spec.DNS)}
		}).
		WithIndex(&corev1beta1.BackupBucket{}, "spec.seedName", func(o client.Object) []string {
			return value(o.(*corev1beta1.BackupBucket).Spec.SeedName)
		}).
		WithIndex(&corev1beta1.BackupEntry{}, "spec.bucketName", func(o client.Object) []string {
			return []string{o.(*corev1beta1.BackupEntry).Spec.BucketName}
		}).
		WithIndex(&seedmanagementv1alpha1.ManagedSeed{}, "spec.shoot.name", func(o client.Object) []string {
			if shoot := o.(*seedmanagementv1alpha1.ManagedSeed).Spec.Shoot; shoot != nil {
				return []string{shoot.Name}
			}
			return []string{""}
		}).
		Build()
}

// Request is a request for a plugin.
type Request struct {
	// Object is what it wants to store; nil in a deletion. Old is what is stored; nil in a creation.
	Object, Old client.Object
	// Resource is such as "shoots", and Group its group: core.gardener.cloud if it is empty.
	Group, Resource, Subresource string
	// Collection is whether the request deletes all objects in a namespace: it has no name and no objects.
	Collection bool
	Namespace  string
	DryRun     bool
	// User is the name of the user: "alice" if it is empty. Groups are those of the user: "users" if there are none.
	User   string
	Groups []string
}

// Attributes returns the request as plugins get it. The operation follows from the objects.
func (r Request) Attributes() admission.Attributes {
	var (
		obj, old  runtime.Object
		operation = admission.Delete
		key       = client.ObjectKey{Namespace: r.Namespace}
	)
	if r.Old != nil {
		old, key = r.Old, client.ObjectKeyFromObject(r.Old)
	}
	if r.Object != nil {
		obj, key = r.Object, client.ObjectKeyFromObject(r.Object)
		operation = admission.Update
		if r.Old == nil {
			operation = admission.Create
		}
	}
	if r.Collection {
		key.Name = ""
	}
	gv := schema.GroupVersion{Group: r.Group, Version: "v1beta1"}
	if r.Group == "" {
		gv.Group = corev1beta1.SchemeGroupVersion.Group
	}
	groups := r.Groups
	if len(groups) == 0 {
		groups = []string{"users"}
	}
	var options runtime.Object
	switch operation {
	case admission.Create:
		options = &metav1.CreateOptions{}
	case admission.Update:
		options = &metav1.UpdateOptions{}
	default:
		options = &metav1.DeleteOptions{}
	}
	return admission.NewAttributesRecord(obj, old, gv.WithKind(""), key.Namespace, key.Name, gv.WithResource(r.Resource), r.Subresource,
		operation, options, r.DryRun, &user.DefaultInfo{Name: cmp.Or(r.User, "alice"), Groups: groups})
}

// Reason returns why an error refuses a request: "" for none, "?" for an error without a reason.
func Reason(err error) metav1.StatusReason {
	if err == nil {
		return ""
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return reason
	}
	return "?"
}

// Denying returns an authorizer that allows everything but some requests, written as "verb resource", such as "get secrets".
func Denying(denied ...string) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if slices.Contains(denied, a.GetVerb()+" "+a.GetResource()) {
			return authorizer.DecisionNoOpinion, "", nil
		}
		return authorizer.DecisionAllow, "", nil
	})
}

// Broken is a reader that always fails.
type Broken struct{}

// Get implements client.Reader.
func (Broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errBroken
}

// List implements client.Reader.
func (Broken) List(context.Context, client.ObjectList, ...client.ListOption) error { return errBroken }

var errBroken = errors.New("the store is broken")
