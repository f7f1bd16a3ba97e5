package env

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	admissioncontrollerprocess "gardener.cloud/gardener/internal/admissioncontroller"
	"gardener.cloud/gardener/internal/component/gardeneradmissioncontroller"
	"gardener.cloud/gardener/internal/process"
)

// rolesOnly is the flag of a kube-apiserver without webhooks for authorization.
const rolesOnly = "--authorization-mode=RBAC"

// admissionController is a gardener-admission-controller in this process.
type admissionController struct {
	config admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration
	health string
	stop   func()
}

// WithAdmissionController runs gardener-admission-controller in the process of the test, or in one of its own if there is a Binary, with a
// configuration that may be changed. The kube-apiserver asks it about requests of gardenlets and extensions, as that of a landscape does. Its
// webhooks are called as soon as there are configurations for them, see Webhooks.
func WithAdmissionController(changes ...func(*admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration)) Option {
	return func(o *options) {
		o.admissionController, o.admissionControllerConfig = true, changes
		// gardener-apiserver asks again for each request, so that a test sees each change at once.
		o.flags = append(o.flags, "--authorization-webhook-cache-authorized-ttl=1ns", "--authorization-webhook-cache-unauthorized-ttl=1ns")
	}
}

// prepareAdmissionController writes the files for the process and for the kube-apiserver, and returns the flags of the latter.
func (e *Env) prepareAdmissionController(port, healthPort int) ([]string, error) {
	dir := filepath.Join(e.dir, admissioncontrollerprocess.Name)
	a := &admissionController{health: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(healthPort))}
	a.config.LogLevel, a.config.LogFormat = "info", "text"
	a.config.GardenClientConnection.QPS = -1
	a.config.GardenClientConnection.Kubeconfig = filepath.Join(e.dir, "kubeconfig")
	a.config.Server.Webhooks.BindAddress, a.config.Server.Webhooks.Port = "127.0.0.1", port
	a.config.Server.Webhooks.TLS.ServerCertDir, a.config.Server.Webhooks.TLS.ClientCAFile = dir, new(e.certs.path("ca.crt"))
	a.config.Server.HealthProbes = &admissioncontrollerconfigv1alpha1.Server{BindAddress: "127.0.0.1", Port: healthPort}
	for _, change := range e.options.admissionControllerConfig {
		change(&a.config)
	}
	e.admissionController = a

	endpoint := e.Webhooks()
	connection := gardeneradmissioncontroller.Connection{
		URL: endpoint.URL, CABundle: endpoint.CABundle, Certificate: e.certs.adminCert, Key: e.certs.adminKey,
	}
	seeds, errSeeds := connection.SeedsKubeconfig()
	shoots, errShoots := connection.ShootsKubeconfig()
	authorization := gardeneradmissioncontroller.Authorization{
		SeedsKubeconfig: filepath.Join(dir, "seeds.yaml"), ShootsKubeconfig: filepath.Join(dir, "shoots.yaml"),
	}
	configuration, errConfiguration := authorization.Configuration()
	if err := errors.Join(errSeeds, errShoots, errConfiguration, os.Mkdir(dir, 0o700)); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "authorization.yaml")
	return []string{"--authorization-config=" + file}, errors.Join(
		os.WriteFile(authorization.SeedsKubeconfig, seeds, 0o600), os.WriteFile(authorization.ShootsKubeconfig, shoots, 0o600),
		os.WriteFile(file, configuration, 0o600),
		os.Symlink(e.certs.path("server.crt"), filepath.Join(dir, "tls.crt")), os.Symlink(e.certs.path("server.key"), filepath.Join(dir, "tls.key")),
	)
}

// Webhooks is where the gardener-admission-controller serves its webhooks.
func (e *Env) Webhooks() gardeneradmissioncontroller.Endpoint {
	server := e.admissionController.config.Server.Webhooks
	return gardeneradmissioncontroller.Endpoint{URL: "https://" + net.JoinHostPort(server.BindAddress, strconv.Itoa(server.Port)), CABundle: e.certs.ca}
}

// startAdmissionController runs the process in the context running, and waits until it is ready.
func (e *Env) startAdmissionController(ctx, running context.Context, logs io.Writer) error {
	a := e.admissionController
	running, cancel := context.WithCancel(running)
	ctx, ended := context.WithCancelCause(ctx)
	defer ended(nil)
	a.stop = cancel
	if e.options.binary != "" {
		file, err := e.writeAdmissionControllerConfig()
		if err != nil {
			return err
		}
		if err := e.exec(running, ended, logs, AdmissionController, e.options.binary, AdmissionController, "--config="+file); err != nil {
			return err
		}
	} else {
		done := make(chan struct{})
		go func() {
			defer close(done)
			log := process.NewLogger(logs, a.config.LogLevel, a.config.LogFormat)
			ended(errors.Join(errors.New("it has ended"), admissioncontrollerprocess.Component("").Run(running, &a.config, log)))
		}()
		a.stop = func() {
			cancel()
			<-done
		}
	}
	if err := awaitOK(ctx, &rest.Config{Host: a.health}, "/readyz"); err != nil {
		return fmt.Errorf("%s: %w", admissioncontrollerprocess.Name, err)
	}
	return nil
}

// writeAdmissionControllerConfig writes the configuration file of a process, and returns its name.
func (e *Env) writeAdmissionControllerConfig() (string, error) {
	config := e.admissionController.config
	config.APIVersion, config.Kind = admissioncontrollerconfigv1alpha1.SchemeGroupVersion.String(), "AdmissionControllerConfiguration"
	data, err := yaml.Marshal(config)
	if err != nil {
		return "", err
	}
	file := filepath.Join(e.dir, AdmissionController, "config.yaml")
	return file, os.WriteFile(file, data, 0o600)
}

// StopAdmissionController stops the gardener-admission-controller, if it runs.
func (e *Env) StopAdmissionController() {
	if a := e.admissionController; a != nil && a.stop != nil {
		a.stop()
		a.stop = nil
	}
}

// StartAdmissionController starts the gardener-admission-controller again, and returns when it is ready.
func (e *Env) StartAdmissionController(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := e.startAdmissionController(ctx, context.WithoutCancel(t.Context()), io.Discard); err != nil {
		t.Fatal(err)
	}
}

// CallWebhooks creates the webhook configurations of gardener-admission-controller.
func (e *Env) CallWebhooks(t testing.TB) {
	t.Helper()
	webhooks := e.admissionController.config.Server.Webhooks
	endpoint := gardeneradmissioncontroller.Endpoint{
		URL: "https://" + net.JoinHostPort(webhooks.BindAddress, strconv.Itoa(webhooks.Port)), CABundle: e.certs.ca,
	}
	for _, configuration := range gardeneradmissioncontroller.Webhooks(endpoint, nil) {
		if err := e.Client.Create(t.Context(), configuration); err != nil {
			t.Fatal(err)
		}
	}
}

// Gardenlet is how the gardenlet of a seed reaches the garden, with a client certificate.
func (e *Env) Gardenlet(t testing.TB, seed string) *rest.Config {
	t.Helper()
	return e.As(t, constants.SeedUserNamePrefix+seed, constants.SeedsGroup)
}

// As is how a user reaches the garden, with a client certificate.
func (e *Env) As(t testing.TB, user string, groups ...string) *rest.Config {
	t.Helper()
	config, err := e.ConfigFor(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// ConfigFor is As for programs that are not tests.
func (e *Env) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: groups}}, key)
	if err != nil {
		return nil, err
	}
	certificate, err := e.Sign(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}), time.Hour)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(e.Config)
	config.CertData, config.KeyData = certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
	return config, nil
}
