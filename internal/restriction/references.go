package restriction

import (
	"context"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	clientauthorizer "gardener.cloud/gardener/internal/authorizer"
	requester "gardener.cloud/gardener/internal/authorizer/client"
	"gardener.cloud/gardener/internal/authorizer/graph"
	"gardener.cloud/gardener/internal/kube/registeredseeds"
)

// References returns a Refusal if a gardenlet or an extension writes an object that newly refers to something it may not read. The authorizer
// gives it what its objects refer to, so that it would give itself whatever it likes to. Requests of all others are admitted.
//
// Gardenlets write references which are not theirs to choose, before the authorizer knows of them: those that an operator has put into the
// Gardenlet or ManagedSeed of the seed, and of the BackupBucket those of the Seed or Shoot. The first registration of a Seed without both
// is admitted with all references: an operator has put them into the configuration of the gardenlet. The certificate of a gardenlet is valid after
// its Seed is deleted, so a further registration is not.
func (v *Values) References(ctx context.Context, r *Request, a authorizer.Authorizer) error {
	if r.Object == nil {
		return nil
	}
	seed, ofSeed := requester.OfSeed(r.User)
	if shoot, ofShoot := requester.OfShoot(r.User); !ofSeed && (!ofShoot || shoot.Type == requester.Gardenadm) {
		return nil
	}
	refs := newReferences(r.Object, r.Old)
	if len(refs) == 0 {
		return nil
	}
	if ofSeed {
		free, err := v.firstRegistration(ctx, seed, r)
		if err != nil || free {
			return err
		}
	}
	given, err := v.given(ctx, r.Object)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if slices.Contains(given, ref) {
			continue
		}
		if err := mayRead(ctx, a, r, ref); err != nil {
			return err
		}
	}
	return nil
}

// newReferences returns what an object leads to, for those who may reach the object, and its stored version does not.
func newReferences(obj, old client.Object) []graph.Key {
	var before []graph.Key
	if old != nil {
		before = append(referencesOf(old), kubeconfigOf(old)...)
	}
	return slices.DeleteFunc(append(referencesOf(obj), kubeconfigOf(obj)...), func(key graph.Key) bool { return slices.Contains(before, key) })
}

// kubeconfigOf returns the Secret with the kubeconfig of a Gardenlet. The gardener-operator reads and deletes it. The graph has no edge for it: clients
// of the seed, which extensions are too, must not read the credentials of an administrator of their cluster.
func kubeconfigOf(obj client.Object) []graph.Key {
	gardenlet, ok := obj.(*seedmanagementv1alpha1.Gardenlet)
	if !ok || gardenlet.Spec.KubeconfigSecretRef == nil {
		return nil
	}
	return []graph.Key{{Kind: graph.Secret, Namespace: gardenlet.Namespace, Name: gardenlet.Spec.KubeconfigSecretRef.Name}}
}

// referencesOf returns the edges of the graph that an object declares and that begin at others. Its BackupBucket is decided on with its name.
func referencesOf(obj client.Object) []graph.Key {
	node := graph.Of(obj)
	var refs []graph.Key
	for _, e := range node.Edges {
		if e.From != node.Key && e.From.Kind != graph.BackupBucket {
			refs = append(refs, e.From)
		}
	}
	return refs
}

// firstRegistration reports whether a gardenlet creates its Seed, which has not existed before, and operators have not said in the garden what is
// in it.
func (v *Values) firstRegistration(ctx context.Context, of requester.Seed, r *Request) (bool, error) {
	if seed, ok := r.Object.(*corev1beta1.Seed); !ok || r.Old != nil || seed.Name != of.Name || of.Type != requester.Gardenlet {
		return false, nil
	}
	declared, err := v.declarations(ctx, of.Name)
	if err != nil || len(declared) > 0 {
		return false, err
	}
	known, err := registeredseeds.Contains(ctx, v.KubeAPI, of.Name)
	if err != nil {
		return false, refuse(http.StatusInternalServerError, "%v", err)
	}
	return !known, nil
}

// declarations returns the Gardenlet and the ManagedSeed of a seed, as far as they exist.
func (v *Values) declarations(ctx context.Context, seed string) ([]client.Object, error) {
	return v.existing(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: seed}, &seedmanagementv1alpha1.Gardenlet{}, &seedmanagementv1alpha1.ManagedSeed{})
}

// existing returns those of some objects with the same name that exist.
func (v *Values) existing(ctx context.Context, key client.ObjectKey, objs ...client.Object) ([]client.Object, error) {
	var found []client.Object
	for _, obj := range objs {
		switch err := v.Garden.Get(ctx, key, obj); {
		case err == nil:
			found = append(found, obj)
		case !apierrors.IsNotFound(err):
			return nil, refuse(http.StatusInternalServerError, "read %s %s: %v", kindOf(obj), shown(key), err)
		}
	}
	return found, nil
}

// given returns the references that are the same in other objects, or follow from the name of the object.
func (v *Values) given(ctx context.Context, obj client.Object) ([]graph.Key, error) {
	var (
		from []client.Object
		refs []graph.Key
		err  error
	)
	switch obj := obj.(type) {
	case *corev1beta1.Seed:
		from, err = v.declarations(ctx, obj.Name)
	case *corev1beta1.BackupBucket:
		// The Secret of a BackupBucket with generated credentials is created after the status names it.
		refs = append(refs, graph.Key{Kind: graph.Secret, Namespace: constants.GardenNamespace, Name: constants.SecretPrefixGeneratedBackupBucket + obj.Name})
		switch {
		case obj.Spec.SeedName != nil:
			from, err = v.existing(ctx, client.ObjectKey{Name: *obj.Spec.SeedName}, &corev1beta1.Seed{})
		case obj.Spec.ShootRef != nil:
			key := client.ObjectKey{Namespace: obj.Spec.ShootRef.Namespace, Name: obj.Spec.ShootRef.Name}
			from, err = v.existing(ctx, key, &corev1beta1.Shoot{})
		}
	}
	for _, declared := range from {
		refs = append(refs, referencesOf(declared)...)
		if shoot, ok := declared.(*corev1beta1.Shoot); ok {
			refs = append(refs, backupCredentials(shoot)...)
		}
	}
	return refs, err
}

// backupCredentials returns the credentials of the backups of a self-hosted shoot. The graph knows them by the BackupBucket.
func backupCredentials(shoot *corev1beta1.Shoot) []graph.Key {
	var refs []graph.Key
	for _, worker := range shoot.Spec.Provider.Workers {
		if worker.ControlPlane != nil && worker.ControlPlane.Backup != nil {
			bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: shoot.Name}}
			bucket.Spec.CredentialsRef = worker.ControlPlane.Backup.CredentialsRef
			refs = append(refs, referencesOf(bucket)...)
		}
	}
	return refs
}

// mayRead refuses a reference to what the user must not read.
func mayRead(ctx context.Context, a authorizer.Authorizer, r *Request, ref graph.Key) error {
	resource := clientauthorizer.ResourceOf(ref.Kind)
	decision, _, err := a.Authorize(ctx, authorizer.AttributesRecord{
		User: r.User, Verb: "get", APIGroup: resource.Group, APIVersion: "*", Resource: resource.Resource,
		Namespace: ref.Namespace, Name: ref.Name, ResourceRequest: true,
	})
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return refuse(http.StatusInternalServerError, "authorize %q to read %s: %v", r.User.GetName(), ref, err)
	}
	return forbid("user %q may not read %s, so must not refer to it: an operator may do so in the Gardenlet or ManagedSeed of the seed", r.User.GetName(), ref)
}
