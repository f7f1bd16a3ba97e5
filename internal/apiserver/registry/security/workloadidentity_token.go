package security

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	requester "gardener.cloud/gardener/internal/authorizer/client"
	"gardener.cloud/gardener/internal/authorizer/graph"
	"gardener.cloud/gardener/internal/validation/security"
)

// token serves tokens of WorkloadIdentities.
type token struct{ Settings }

var _ rest.NamedCreater = &token{}

// claims are the content of a token.
type claims struct {
	jwt.RegisteredClaims
	Gardener contextClaims `json:"gardener.cloud"`
}

// contextClaims name the objects that a token is used for.
type contextClaims struct {
	WorkloadIdentity objectClaim  `json:"workloadIdentity"`
	Shoot            *objectClaim `json:"shoot,omitempty"`
	Project          *objectClaim `json:"project,omitempty"`
	Seed             *objectClaim `json:"seed,omitempty"`
	BackupBucket     *objectClaim `json:"backupBucket,omitempty"`
	BackupEntry      *objectClaim `json:"backupEntry,omitempty"`
}

type objectClaim struct {
	Name      string    `json:"name"`
	Namespace string    `json:"namespace,omitempty"`
	UID       types.UID `json:"uid"`
}

// New implements rest.Storage.
func (r *token) New() runtime.Object { return &securityv1alpha1.TokenRequest{} }

// Destroy implements rest.Storage. Nothing is stored.
func (r *token) Destroy() {}

// Create implements rest.NamedCreater: it returns a token of a WorkloadIdentity. A dry run is validated, but gets none.
func (r *token) Create(
	ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	request, ok := obj.(*securityv1alpha1.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a TokenRequest, got %T", obj))
	}
	namespace, author, err := kind.Requester(ctx)
	if err != nil {
		return nil, err
	}
	if err := validate(ctx, request.DeepCopy()); err != nil {
		return nil, err
	}
	errs := security.ValidateTokenRequest(request)
	if request.Spec.ExpirationSeconds == nil {
		errs = append(errs, field.Required(field.NewPath("spec", "expirationSeconds"), "must be set"))
	}
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(securityv1alpha1.Kind("TokenRequest"), name, errs)
	}
	if r.TokenIssuer == "" || r.TokenKey == nil {
		return nil, apierrors.NewServiceUnavailable("no tokens are issued: gardener-apiserver needs the flags " +
			"--workload-identity-token-issuer and --workload-identity-signing-key-file")
	}
	identity := &securityv1alpha1.WorkloadIdentity{}
	if err := r.GardenCache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, identity, initializer.Fresh); err != nil {
		return nil, err
	}
	about := contextClaims{WorkloadIdentity: *claimOf(identity)}
	if of := request.Spec.ContextObject; of != nil {
		if caller, ok := gardenletOf(author); ok {
			if err := r.resolve(ctx, of, &about, caller, identity); err != nil {
				return nil, err
			}
		} else {
			// Receivers trust the claims, so they cannot come from any user.
			warning.AddWarning(ctx, "", "spec.contextObject is ignored: only gardenlets may say what a token is used for")
		}
	}
	if dryrun.IsDryRun(options.DryRun) {
		return request, nil
	}
	kind.SetResponseMeta(&request.ObjectMeta, name)
	now := r.Clock.Now()
	lifetime := time.Duration(*request.Spec.ExpirationSeconds) * time.Second
	until := now.Add(min(max(lifetime, r.TokenMinExpiration), r.TokenMaxExpiration))
	request.Status.ExpirationTimestamp = metav1.NewTime(until)
	request.Status.Token, err = signToken(r.TokenKey, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: r.TokenIssuer, Subject: identity.Status.Sub, Audience: identity.Spec.Audiences, ID: string(uuid.NewUUID()),
			IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(until),
		},
		Gardener: about,
	})
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("sign a token of WorkloadIdentity %s/%s: %w", namespace, name, err))
	}
	return request, nil
}

// resolve adds claims of the object that a token is used for, and of those that it belongs to. The object must be one of the caller, and use
// the identity: receivers give to the object what they give to its owner.
func (r *token) resolve(ctx context.Context, of *securityv1alpha1.ContextObject, claims *contextClaims, caller gardenlet, identity *securityv1alpha1.WorkloadIdentity) error {
	key := client.ObjectKey{Namespace: ptr.Deref(of.Namespace, ""), Name: of.Name}
	unsupported := apierrors.NewBadRequest(fmt.Sprintf("spec.contextObject: %s in %s is not supported: use Shoot, Seed, BackupBucket or BackupEntry in %s",
		of.Kind, of.APIVersion, corev1beta1.SchemeGroupVersion))
	if of.APIVersion != corev1beta1.SchemeGroupVersion.String() {
		return unsupported
	}
	read := func(obj client.Object) (*objectClaim, error) {
		if err := r.GardenCache.Get(ctx, key, obj); err != nil {
			return nil, err
		}
		if obj.GetUID() != of.UID {
			return nil, apierrors.NewConflict(corev1beta1.Resource(of.Kind), of.Name, errors.New("spec.contextObject.uid is not the one of the object"))
		}
		return claimOf(obj), nil
	}
	// own is whether the object is one of the caller, and users are the objects whose references say which identities it uses.
	var (
		own   bool
		users []client.Object
		err   error
	)
	switch of.Kind {
	case "Shoot":
		shoot := &corev1beta1.Shoot{}
		if claims.Shoot, err = read(shoot); err != nil {
			return err
		}
		own = caller.isSeed(shoot.Spec.SeedName, shoot.Status.SeedName) || caller.shoot == key
		if users, err = r.usersOfShoot(ctx, shoot); err != nil {
			return err
		}
		if claims.Project, err = r.projectOf(ctx, shoot.Namespace); err != nil {
			return err
		}
		claims.Seed, err = r.seed(ctx, shoot.Spec.SeedName)
	case "Seed":
		seed := &corev1beta1.Seed{}
		claims.Seed, err = read(seed)
		own, users = caller.isSeed(&seed.Name), []client.Object{seed}
	case "BackupBucket":
		bucket := &corev1beta1.BackupBucket{}
		if claims.BackupBucket, err = read(bucket); err != nil {
			return err
		}
		own, users = caller.isSeed(bucket.Spec.SeedName) || caller.isShoot(bucket.Spec.ShootRef), []client.Object{bucket}
		claims.Seed, err = r.seed(ctx, bucket.Spec.SeedName)
	case "BackupEntry":
		entry := &corev1beta1.BackupEntry{}
		if claims.BackupEntry, err = read(entry); err != nil {
			return err
		}
		bucket := &corev1beta1.BackupBucket{}
		if err := r.GardenCache.Get(ctx, client.ObjectKey{Name: entry.Spec.BucketName}, bucket); err != nil {
			return err
		}
		own = caller.isSeed(entry.Spec.SeedName, entry.Status.SeedName) || caller.isShoot(entry.Spec.ShootRef)
		users = []client.Object{bucket}
		claims.BackupBucket = claimOf(bucket)
		if claims.Project, err = r.projectOf(ctx, entry.Namespace); err != nil {
			return err
		}
		claims.Seed, err = r.seed(ctx, entry.Spec.SeedName)
	default:
		return unsupported
	}
	if err != nil {
		return err
	}
	target := graph.Key{Kind: graph.WorkloadIdentity, Namespace: identity.Namespace, Name: identity.Name}
	if !own || !slices.ContainsFunc(users, func(obj client.Object) bool { return graph.RefersTo(obj, target) }) {
		return apierrors.NewForbidden(securityv1alpha1.Resource("workloadidentities"), identity.Name,
			fmt.Errorf("spec.contextObject: %s %q does not belong to %s, or does not use the WorkloadIdentity", of.Kind, strings.TrimPrefix(key.String(), "/"), caller))
	}
	return nil
}

// gardenlet is the seed or self-hosted shoot of a gardenlet.
type gardenlet struct {
	seed  string
	shoot client.ObjectKey
}

// gardenletOf returns the gardenlet that a user is. Extensions and others may not say what a token is used for.
func gardenletOf(u user.Info) (gardenlet, bool) {
	if seed, ok := requester.OfSeed(u); ok {
		return gardenlet{seed: seed.Name}, seed.Type == requester.Gardenlet
	}
	shoot, ok := requester.OfShoot(u)
	return gardenlet{shoot: shoot.NamespacedName}, ok && shoot.Type == requester.Gardenlet
}

func (g gardenlet) isSeed(names ...*string) bool {
	return g.seed != "" && slices.ContainsFunc(names, func(name *string) bool { return name != nil && *name == g.seed })
}

func (g gardenlet) isShoot(ref *corev1.ObjectReference) bool {
	return ref != nil && g.shoot == client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
}

// String names the seed or shoot.
func (g gardenlet) String() string {
	if g.seed != "" {
		return "seed " + g.seed
	}
	return "shoot " + g.shoot.String()
}

// usersOfShoot returns what refers to the identities of a Shoot: itself, its CredentialsBinding, and its Seed for the domains of the seed.
func (r *token) usersOfShoot(ctx context.Context, shoot *corev1beta1.Shoot) ([]client.Object, error) {
	users := []client.Object{shoot}
	if name := shoot.Spec.CredentialsBindingName; name != nil {
		binding := &securityv1alpha1.CredentialsBinding{}
		if err := r.GardenCache.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *name}, binding); client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		users = append(users, binding)
	}
	if name := shoot.Spec.SeedName; name != nil {
		seed := &corev1beta1.Seed{}
		if err := r.GardenCache.Get(ctx, client.ObjectKey{Name: *name}, seed); err != nil {
			return nil, err
		}
		// The names of a shoot may be in domains of the seed. Backups and other resources of the seed are not for shoots.
		users = append(users, &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{DNS: seed.Spec.DNS}})
	}
	return users, nil
}

func (r *token) seed(ctx context.Context, name *string) (*objectClaim, error) {
	if name == nil {
		return nil, nil //nolint:nilnil // without a seed there is no claim
	}
	seed := &corev1beta1.Seed{}
	if err := r.GardenCache.Get(ctx, client.ObjectKey{Name: *name}, seed); err != nil {
		return nil, err
	}
	return claimOf(seed), nil
}

func (r *token) projectOf(ctx context.Context, namespace string) (*objectClaim, error) {
	projects := &corev1beta1.ProjectList{}
	if err := r.GardenCache.List(ctx, projects, client.MatchingFields{"spec.namespace": namespace}); err != nil {
		return nil, err
	}
	if len(projects.Items) == 0 {
		return nil, apierrors.NewInternalError(fmt.Errorf("namespace %q belongs to no project", namespace))
	}
	return claimOf(&projects.Items[0]), nil
}

func claimOf(obj client.Object) *objectClaim {
	return &objectClaim{Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID()}
}

// signToken returns the signed claims. The key ID is computed as kube-apiserver does it, so that the same tools can write discovery
// documents.
func signToken(key crypto.PrivateKey, claims jwt.Claims) (string, error) {
	var (
		method jwt.SigningMethod
		public crypto.PublicKey
	)
	switch key := key.(type) {
	case *rsa.PrivateKey:
		method, public = jwt.SigningMethodRS256, key.Public()
	case *ecdsa.PrivateKey:
		public = key.Public()
		switch key.Curve {
		case elliptic.P256():
			method = jwt.SigningMethodES256
		case elliptic.P384():
			method = jwt.SigningMethodES384
		case elliptic.P521():
			method = jwt.SigningMethodES512
		}
	}
	if method == nil {
		return "", fmt.Errorf("a key of type %T cannot sign tokens", key)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(der)
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = base64.RawURLEncoding.EncodeToString(sum[:])
	return token.SignedString(key)
}
