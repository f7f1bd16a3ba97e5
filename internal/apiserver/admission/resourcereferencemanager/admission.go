// Package resourcereferencemanager checks references: an object that is newly referred to must exist, and users who refer to
// credentials or configuration must be allowed to read them. Versions in cloud profiles that Shoots use cannot be removed, and
// BackupBuckets with BackupEntries cannot be deleted.
package resourcereferencemanager

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	requester "gardener.cloud/gardener/internal/authorizer/client"
)

// Name is the name of the plugin.
const Name = "ResourceReferenceManager"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(clock.RealClock{}), nil })
}

// New returns the plugin.
func New(c clock.PassiveClock) *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), clock: c}
}

// Plugin checks references. Reads all targets of references, in the garden and in the kube-apiserver, and lists Shoots,
// Projects and BackupEntries.
type Plugin struct {
	*admission.Handler
	initializer.Base
	clock clock.PassiveClock
}

var _ admission.ValidationInterface = &Plugin{}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Delete {
		if a.GetResource().Resource == "backupbuckets" && a.GetResource().Group == corev1beta1.SchemeGroupVersion.Group && a.GetSubresource() == "" {
			return p.validateBucketDeletion(ctx, a)
		}
		return nil
	}
	obj, ok := a.GetObject().(client.Object)
	// Objects in deletion get no new references, and their deletion must not be blocked.
	if !ok || obj.GetDeletionTimestamp() != nil {
		return nil
	}
	old, _ := a.GetOldObject().(client.Object)
	if err := p.checkReferences(ctx, a, obj, old); err != nil {
		return err
	}
	if a.GetSubresource() != "" {
		return nil
	}
	switch o := obj.(type) {
	case *corev1beta1.SecretBinding:
		return p.checkQuotas(ctx, a, o.Quotas, o.Namespace)
	case *securityv1alpha1.CredentialsBinding:
		return p.checkQuotas(ctx, a, o.Quotas, o.Namespace)
	case *corev1beta1.Project:
		oldProject, _ := old.(*corev1beta1.Project)
		return p.checkProjectNamespace(ctx, a, o, oldProject)
	case *corev1beta1.CloudProfile:
		if oldProfile, ok := old.(*corev1beta1.CloudProfile); ok {
			return p.checkCloudProfile(ctx, a, o, oldProfile)
		}
	case *corev1beta1.NamespacedCloudProfile:
		if oldProfile, ok := old.(*corev1beta1.NamespacedCloudProfile); ok {
			return p.checkNamespacedCloudProfile(ctx, a, o, oldProfile)
		}
	}
	return nil
}

// checkReferences checks the references of an object that its old version did not have.
func (p *Plugin) checkReferences(ctx context.Context, a admission.Attributes, obj, old client.Object) error {
	before := sets.New[target]()
	if old != nil {
		for _, ref := range references(old) {
			before.Insert(ref.target)
		}
	}
	for _, ref := range references(obj) {
		if before.Has(ref.target) {
			continue
		}
		if ref.private() {
			if err := p.authorize(ctx, a, ref); err != nil {
				return err
			}
		}
		reader := p.GardenCache
		if ref.apiVersion == "v1" {
			reader = p.KubeAPI
		}
		err := reader.Get(ctx, ref.key, ref.object())
		switch {
		case apierrors.IsNotFound(err):
			return admission.NewForbidden(a, fmt.Errorf("%s: %s %q does not exist", ref.path, ref.kind, shown(ref.key)))
		case err != nil:
			return apierrors.NewInternalError(fmt.Errorf("read %s %q: %w", ref.kind, shown(ref.key), err))
		}
	}
	return nil
}

// authorize refuses references to objects that the user may not read: controllers read them for the user. Who reads a Secret has the
// credentials; who reads a WorkloadIdentity has not, so for one of another project users need the permission to update it.
func (p *Plugin) authorize(ctx context.Context, a admission.Attributes, ref reference) error {
	verb, shownVerb := "get", "read"
	if ref.kind == "WorkloadIdentity" && ref.key.Namespace != a.GetNamespace() {
		verb, shownVerb = "update", "update"
	}
	decision, _, err := p.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: verb, APIGroup: ref.group(), APIVersion: ref.version(), Resource: ref.resource(),
		Namespace: ref.key.Namespace, Name: ref.key.Name, ResourceRequest: true,
	})
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("authorize %q to %s %s %q: %w", a.GetUserInfo().GetName(), shownVerb, ref.kind, shown(ref.key), err))
	}
	return admission.NewForbidden(a, fmt.Errorf("%s: user %q may not %s %s %q, so must not refer to it",
		ref.path, a.GetUserInfo().GetName(), shownVerb, ref.kind, shown(ref.key)))
}

// checkQuotas allows one Quota of each scope per binding, as it would not be clear which of two is valid.
func (p *Plugin) checkQuotas(ctx context.Context, a admission.Attributes, refs []corev1.ObjectReference, namespace string) error {
	if a.GetOperation() != admission.Create {
		return nil // they are immutable
	}
	scopes := map[corev1.ObjectReference]string{}
	for i, ref := range refs {
		key := client.ObjectKey{Namespace: cmp.Or(ref.Namespace, namespace), Name: ref.Name}
		quota := &corev1beta1.Quota{}
		if err := p.GardenCache.Get(ctx, key, quota); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("read Quota %q: %w", key, err))
		}
		scope := corev1.ObjectReference{APIVersion: quota.Spec.Scope.APIVersion, Kind: quota.Spec.Scope.Kind}
		if other, ok := scopes[scope]; ok {
			return admission.NewForbidden(a, fmt.Errorf("quotas[%d]: Quota %q has the scope %s, but so has %q", i, key, scope.Kind, other))
		}
		scopes[scope] = key.String()
	}
	return nil
}

// checkProjectNamespace refuses a namespace that another Project has, and that of the garden to users who are not its operators: members of a Project read the
// credentials in its namespace, and its settings apply to the Shoots there.
func (p *Plugin) checkProjectNamespace(ctx context.Context, a admission.Attributes, project, old *corev1beta1.Project) error {
	namespace := project.Spec.Namespace
	if namespace == nil || old != nil && old.Spec.Namespace != nil && *old.Spec.Namespace == *namespace {
		return nil
	}
	if *namespace == gardenNamespace {
		if err := p.authorizeGarden(ctx, a); err != nil {
			return err
		}
	}
	projects := &corev1beta1.ProjectList{}
	if err := p.GardenCache.List(ctx, projects, client.MatchingFields{"spec.namespace": *namespace}, initializer.Fresh); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("list Projects: %w", err))
	}
	for i := range projects.Items {
		if other := projects.Items[i].Name; other != project.Name {
			return admission.NewForbidden(a, fmt.Errorf("spec.namespace: namespace %q belongs to Project %q", *namespace, other))
		}
	}
	return nil
}

// authorizeGarden refuses users who may not update the namespace of the garden. An operator has given gardenadm a token for a shoot in that namespace.
func (p *Plugin) authorizeGarden(ctx context.Context, a admission.Attributes) error {
	user := a.GetUserInfo()
	if shoot, ok := requester.OfShoot(user); ok && shoot.Type == requester.Gardenadm && shoot.Namespace == gardenNamespace {
		return nil
	}
	decision, _, err := p.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: user, Verb: "update", APIVersion: "v1", Resource: "namespaces", Name: gardenNamespace, ResourceRequest: true,
	})
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("authorize %q to update Namespace %q: %w", user.GetName(), gardenNamespace, err))
	}
	return admission.NewForbidden(a, fmt.Errorf("spec.namespace: user %q may not update Namespace %q, so must not have a Project with it", user.GetName(), gardenNamespace))
}

// validateBucketDeletion refuses to delete buckets with entries.
func (p *Plugin) validateBucketDeletion(ctx context.Context, a admission.Attributes) error {
	opts := []client.ListOption{initializer.Fresh}
	if a.GetName() != "" {
		opts = append(opts, client.MatchingFields{"spec.bucketName": a.GetName()})
	}
	entries := &corev1beta1.BackupEntryList{}
	if err := p.GardenCache.List(ctx, entries, opts...); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("list BackupEntries: %w", err))
	}
	if len(entries.Items) == 0 {
		return nil
	}
	var names []string
	for i := range entries.Items {
		names = append(names, client.ObjectKeyFromObject(&entries.Items[i]).String())
	}
	return admission.NewForbidden(a, fmt.Errorf("the bucket is used by BackupEntries: %s", listed(names)))
}

// maxListed is how many names an error has.
const maxListed = 5

func listed(names []string) string {
	if more := len(names) - maxListed; more > 0 {
		names = append(names[:maxListed:maxListed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// shown returns a key without the slash in front of a name without a namespace.
func shown(key client.ObjectKey) string { return strings.TrimPrefix(key.String(), "/") }

// object is an empty object to read the target into. Of objects in the kube-apiserver only metadata are read: the content is secret.
func (t target) object() client.Object {
	if t.apiVersion == "v1" {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: t.apiVersion, Kind: t.kind}}
	}
	return t.find().object()
}
