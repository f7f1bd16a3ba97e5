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
	"time"

	"github.com/golang-jwt/jwt/v5"
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
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
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
	namespace, requester, err := kind.Requester(ctx)
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
	if err := r.GardenCache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, identity); err != nil {
		return nil, err
	}
	about := contextClaims{WorkloadIdentity: *claimOf(identity)}
	if of := request.Spec.ContextObject; of != nil {
		if isGardenlet(requester) {
			if err := r.resolve(ctx, of, &about); err != nil {
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

func isGardenlet(u user.Info) bool {
	return slices.Contains(u.GetGroups(), constants.SeedsGroup) || slices.Contains(u.GetGroups(), constants.ShootsGroup)
}

// resolve adds claims of the object that a token is used for, and of those that it belongs to.
func (r *token) resolve(ctx context.Context, of *securityv1alpha1.ContextObject, claims *contextClaims) error {
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
	var err error
	switch of.Kind {
	case "Shoot":
		shoot := &corev1beta1.Shoot{}
		if claims.Shoot, err = read(shoot); err != nil {
			return err
		}
		if claims.Project, err = r.projectOf(ctx, shoot.Namespace); err != nil {
			return err
		}
		claims.Seed, err = r.seed(ctx, shoot.Spec.SeedName)
	case "Seed":
		claims.Seed, err = read(&corev1beta1.Seed{})
	case "BackupBucket":
		bucket := &corev1beta1.BackupBucket{}
		if claims.BackupBucket, err = read(bucket); err != nil {
			return err
		}
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
		claims.BackupBucket = claimOf(bucket)
		if claims.Project, err = r.projectOf(ctx, entry.Namespace); err != nil {
			return err
		}
		claims.Seed, err = r.seed(ctx, entry.Spec.SeedName)
	default:
		return unsupported
	}
	return err
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
