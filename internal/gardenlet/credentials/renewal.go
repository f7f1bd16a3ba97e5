package credentials

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// ErrRestart is returned when new credentials exist, which the process uses after a restart.
var ErrRestart = errors.New("the kubeconfig for the garden has changed; restarting to use it")

// retryAfter is when a failed renewal is retried. The old certificate is usually valid for days.
const retryAfter = time.Minute

// Keep renews a client certificate when it is due or when the annotation of the Secret requests it. It returns ErrRestart as soon as the Secret
// has another kubeconfig than the one in use, also if another replica or the operator has written it. Without a Secret in the configuration, it
// waits for the end of the context.
func Keep(ctx context.Context, v Values, access *Access) error {
	if v.Connection.KubeconfigSecret == nil {
		<-ctx.Done()
		return nil
	}
	log := logf.FromContext(ctx)
	for {
		waitCtx, cancel := context.WithCancelCause(ctx)
		stop := func() bool { return false }
		if due := v.due(access.Certificate); due != nil {
			log.V(1).Info("Planning renewal of the client certificate", "at", due.UTC())
			stop = v.Clock.AfterFunc(due.Sub(v.Clock.Now()), func() { cancel(errDue) }).Stop
		}
		err := v.awaitChange(waitCtx, access)
		stop()
		cancel(nil)
		switch {
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, errRequested) && !errors.Is(context.Cause(waitCtx), errDue):
			return err
		}
		log.Info("Renewing client certificate")
		if _, err := v.renew(ctx, access); err == nil {
			return ErrRestart
		} else if ctx.Err() != nil {
			return nil
		} else if access.Certificate.expired(v.Clock.Now()) {
			return fmt.Errorf("renew client certificate, which has expired: %w", err)
		} else {
			log.Error(err, "Failed renewing client certificate, will retry", "after", retryAfter)
		}
		select {
		case <-v.Clock.After(retryAfter):
		case <-ctx.Done():
			return nil
		}
	}
}

var (
	errDue       = errors.New("the certificate is due for renewal")
	errRequested = errors.New("renewal requested")
)

// due is when a certificate is to be renewed. Nil without one.
func (v Values) due(certificate *Validity) *time.Time {
	if certificate == nil {
		return nil
	}
	return new(renewalTime(*certificate, v.Connection.KubeconfigValidity, rand.Float64())) //nolint:gosec // spreads load, keeps no secret
}

// renewalTime is between the configured shares of the validity. The jitter, from 0 to 1, says where.
func renewalTime(certificate Validity, config *gardenletconfigv1alpha1.KubeconfigValidity, jitter float64) time.Time {
	lowest, highest := float64(*config.AutoRotationJitterPercentageMin), float64(*config.AutoRotationJitterPercentageMax)
	share := (lowest + (highest-lowest)*jitter) / 100
	return certificate.NotBefore.Add(time.Duration(share * float64(certificate.NotAfter.Sub(certificate.NotBefore))))
}

// awaitChange returns ErrRestart when the Secret has another kubeconfig than the one in use, and errRequested when a renewal is requested.
func (v Values) awaitChange(ctx context.Context, access *Access) error {
	key := v.secretKey(v.Connection.KubeconfigSecret)
	var found error
	err := kube.Await(ctx, v.SeedAPI, &corev1.SecretList{}, func(secrets []*corev1.Secret) error {
		if len(secrets) == 0 || len(secrets[0].Data[Kubeconfig]) == 0 {
			return errUnchanged
		}
		switch {
		case v.differs(secrets[0].Data[Kubeconfig], access):
			found = ErrRestart
		case renewalRequested(secrets[0]):
			found = errRequested
		default:
			return errUnchanged
		}
		return nil
	}, nil, client.InNamespace(key.Namespace), client.MatchingFields{metav1.ObjectNameField: key.Name})
	if found != nil {
		return found
	}
	return err
}

var errUnchanged = errors.New("the kubeconfig is the one in use")

// differs is whether a kubeconfig is valid and not the one in use.
func (v Values) differs(kubeconfig []byte, access *Access) bool {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return false // it could not be used after a restart
	}
	other, err := newAccess(config)
	if err != nil || other.Certificate.expired(v.Clock.Now()) {
		return false
	}
	a, b := config, access.Config
	return string(a.CertData) != string(b.CertData) || string(a.CAData) != string(b.CAData) || a.Host != b.Host || a.BearerToken != b.BearerToken
}
