package shootvalidator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
)

// credentials are those that a binding refers to.
type credentials struct {
	providers []string
	group     string
	// version and resource are those of the kind of the credentials.
	version, resource, namespace, name string
}

// readCredentials returns the credentials of the binding of a shoot; nil if the shoot names none, or one that does not exist: another
// plugin checks that.
func (p *Plugin) readCredentials(ctx context.Context, namespace string, spec *corev1beta1.ShootSpec) (*credentials, error) {
	if name := spec.CredentialsBindingName; name != nil && *name != "" {
		binding := &securityv1alpha1.CredentialsBinding{}
		if err := p.GardenCache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: *name}, binding); apierrors.IsNotFound(err) {
			return nil, nil
		} else if err != nil {
			return nil, fmt.Errorf("read CredentialsBinding %q: %w", *name, err)
		}
		return credentialsOf(binding.Provider.Type, binding.CredentialsRef), nil
	}
	if name := spec.SecretBindingName; name != nil && *name != "" {
		binding := &corev1beta1.SecretBinding{}
		if err := p.GardenCache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: *name}, binding); apierrors.IsNotFound(err) {
			return nil, nil
		} else if err != nil {
			return nil, fmt.Errorf("read SecretBinding %q: %w", *name, err)
		}
		providers := ""
		if binding.Provider != nil {
			providers = binding.Provider.Type
		}
		return credentialsOf(providers, corev1.ObjectReference{
			APIVersion: "v1", Kind: "Secret", Namespace: cmp.Or(binding.SecretRef.Namespace, namespace), Name: binding.SecretRef.Name,
		}), nil
	}
	return nil, nil
}

func credentialsOf(providers string, ref corev1.ObjectReference) *credentials {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		gv = schema.GroupVersion{}
	}
	c := &credentials{group: gv.Group, version: gv.Version, namespace: ref.Namespace, name: ref.Name}
	if providers != "" {
		c.providers = strings.Split(providers, ",")
	}
	switch ref.Kind {
	case "WorkloadIdentity":
		c.resource = "workloadidentities"
	default:
		c.resource = strings.ToLower(ref.Kind) + "s"
	}
	return c
}

func (p *Plugin) readCredentialsProviders(ctx context.Context, shoot *corev1beta1.Shoot) ([]string, error) {
	c, err := p.readCredentials(ctx, shoot.Namespace, &shoot.Spec)
	if err != nil || c == nil {
		return nil, err
	}
	return c.providers, nil
}

// same reports whether two bindings refer to the same object.
func (c *credentials) same(other *credentials) bool {
	return c.group == other.group && c.resource == other.resource && c.namespace == other.namespace && c.name == other.name
}

// checkCredentialsChange checks that a user who changes the credentials of a shoot may read both the old and the new ones.
// Otherwise users who may only refer to a binding could use its credentials for other resources. A CredentialsBinding that replaces a
// SecretBinding refers to the same Secret: it is another way to write the same, not a change of credentials.
func (p *Plugin) checkCredentialsChange(ctx context.Context, a admission.Attributes, in *input) error {
	is, was := &in.shoot.Spec, &in.old.Spec
	if in.isNew || in.deleting() || apiequality.Semantic.DeepEqual(is.CredentialsBindingName, was.CredentialsBindingName) &&
		apiequality.Semantic.DeepEqual(is.SecretBindingName, was.SecretBindingName) {
		return nil
	}
	before, err := p.readCredentials(ctx, in.shoot.Namespace, was)
	if err != nil {
		return err
	}
	after, err := p.readCredentials(ctx, in.shoot.Namespace, is)
	if err != nil {
		return err
	}
	for _, c := range []*credentials{before, after} {
		if c == nil {
			continue
		}
		if err := p.authorize(ctx, a, authorizer.AttributesRecord{
			Verb: "get", APIGroup: c.group, APIVersion: c.version, Resource: c.resource, Namespace: c.namespace, Name: c.name, ResourceRequest: true,
		}); err != nil {
			return fmt.Errorf("the credentials cannot be changed: %w", err)
		}
	}
	if was.SecretBindingName != nil && is.SecretBindingName == nil && after != nil && (before == nil || !before.same(after)) {
		return field.Invalid(field.NewPath("spec", "credentialsBindingName"), is.CredentialsBindingName,
			fmt.Sprintf("must be a CredentialsBinding with the Secret of SecretBinding %q", *was.SecretBindingName))
	}
	return nil
}

// provider checks that shoot, profile and credentials are of the same provider.
func provider(in *input) field.ErrorList {
	var errs field.ErrorList
	providerType, path := in.shoot.Spec.Provider.Type, field.NewPath("spec", "provider", "type")
	if in.profile.Type != providerType {
		errs = append(errs, field.Invalid(path, providerType, "must be that of the cloud profile, "+in.profile.Type))
	}
	if types := in.credentialsProviders; len(types) > 0 && !slices.Contains(types, providerType) {
		errs = append(errs, field.Invalid(path, providerType, "must be that of the credentials binding, "+strings.Join(types, " or ")))
	}
	return errs
}
