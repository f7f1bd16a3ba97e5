package workloadidentity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

const (
	// passTimeout limits a pass, which makes up to seven requests.
	passTimeout = time.Minute
	// renewShare is the share of a token's life after which it is renewed.
	renewShare = 0.8
	// maxEarly is how much of that time a token may be renewed earlier, so that those that were made at once do not stay together.
	maxEarly = 0.05
)

type reconciler struct {
	Values
	// early returns a share of at most maxEarly.
	early func() float64
}

// order is what a Secret asks for.
type order struct {
	identity client.ObjectKey
	context  *securityv1alpha1.ContextObject
}

// orderOf reads the annotations of a Secret.
func orderOf(secret *corev1.Secret) (order, error) {
	a := secret.Annotations
	o := order{identity: client.ObjectKey{
		Namespace: a[securityv1alpha1.AnnotationWorkloadIdentityNamespace], Name: a[securityv1alpha1.AnnotationWorkloadIdentityName],
	}}
	for _, wanted := range []struct{ key, value string }{
		{securityv1alpha1.AnnotationWorkloadIdentityNamespace, o.identity.Namespace}, {securityv1alpha1.AnnotationWorkloadIdentityName, o.identity.Name},
	} {
		if wanted.value == "" {
			return o, fmt.Errorf("annotation %s is missing", wanted.key)
		}
	}
	if text := a[securityv1alpha1.AnnotationWorkloadIdentityContextObject]; text != "" {
		o.context = &securityv1alpha1.ContextObject{}
		if err := json.Unmarshal([]byte(text), o.context); err != nil {
			return o, fmt.Errorf("annotation %s: %w", securityv1alpha1.AnnotationWorkloadIdentityContextObject, err)
		}
	}
	return o, nil
}

// due is when the token of a Secret is to be renewed. It is the beginning of time if there is none.
func due(secret *corev1.Secret) time.Time {
	at, err := time.Parse(time.RFC3339, secret.Annotations[securityv1alpha1.AnnotationWorkloadIdentityTokenRenewTimestamp])
	if err != nil || len(secret.Data[securityv1alpha1.DataKeyToken]) == 0 {
		return time.Time{}
	}
	return at
}

// Reconcile fills one Secret when it is time to.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := r.SeedClient.Get(ctx, request.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if secret.DeletionTimestamp != nil || !responsible(secret) {
		return reconcile.Result{}, nil
	}
	if wait := due(secret).Sub(r.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	o, err := orderOf(secret)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err) // only an edit helps
	}
	if err := r.authorize(ctx, secret.Namespace, o); err != nil {
		return kube.Result(err) // an edit in the garden may help, of which no event tells
	}
	token, renewAt, err := r.request(ctx, o)
	if err != nil {
		return kube.Result(err)
	}
	after := secret.DeepCopy()
	if after.Data == nil {
		after.Data = map[string][]byte{}
	}
	after.Data[securityv1alpha1.DataKeyToken] = []byte(token)
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, securityv1alpha1.AnnotationWorkloadIdentityTokenRenewTimestamp, renewAt.UTC().Format(time.RFC3339))
	if err := r.SeedClient.Patch(ctx, after, client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{})); err != nil {
		return kube.Result(fmt.Errorf("write the token: %w", err))
	}
	return reconcile.Result{RequeueAfter: max(renewAt.Sub(r.Clock.Now()), time.Second)}, nil
}

// request returns a new token and when it is to be renewed.
func (r *reconciler) request(ctx context.Context, o order) (string, time.Time, error) {
	logf.FromContext(ctx).Info("Requesting a token", "workloadIdentity", o.identity)
	identity := &securityv1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: o.identity.Namespace, Name: o.identity.Name}}
	answer := &securityv1alpha1.TokenRequest{Spec: securityv1alpha1.TokenRequestSpec{
		ContextObject: o.context, ExpirationSeconds: new(int64(r.TokenExpiration / time.Second)),
	}}
	now := r.Clock.Now()
	if err := r.GardenClient.SubResource("token").Create(ctx, identity, answer); err != nil {
		return "", time.Time{}, fmt.Errorf("request a token of WorkloadIdentity %s: %w", o.identity, err)
	}
	if answer.Status.Token == "" {
		return "", time.Time{}, errors.New("the garden has answered without a token")
	}
	life := float64(answer.Status.ExpirationTimestamp.Sub(now)) * renewShare
	return answer.Status.Token, now.Add(time.Duration(life * (1 - r.early()))), nil
}
