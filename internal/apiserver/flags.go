package apiserver

import (
	"crypto"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/apiserver/features"
	"gardener.cloud/gardener/internal/apiserver/registry"
	registrycore "gardener.cloud/gardener/internal/apiserver/registry/core"
	"gardener.cloud/gardener/internal/apiserver/registry/security"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/validation/core"
)

const (
	// minKubeconfigLifetime is the least that the longest lifetime of kubeconfigs can be set to: it is the default of requests.
	minKubeconfigLifetime = time.Hour
	// minTokenLifetime keeps tokens valid until they have reached the component that uses them.
	minTokenLifetime = 10 * time.Minute
)

// The first of each is the default.
var (
	logLevels  = []string{"info", "debug", "error"}
	logFormats = []string{"json", "text"}
)

// minRotationInterval avoids warnings about credentials that were just rotated.
const minRotationInterval = 24 * time.Hour

// flags are the flags besides those that every API server has.
type flags struct {
	clusterIdentity                         string
	logLevel, logFormat                     string
	rotationInterval                        time.Duration
	adminKubeconfigMax, viewerKubeconfigMax time.Duration
	tokenIssuer, tokenKeyFile               string
	tokenMin, tokenMax                      time.Duration
	maxReads, maxWrites                     int
	goAwayChance                            float64
	klog                                    *flag.FlagSet
}

// maxGoAwayChance is that of kube-apiservers: with more, clients would connect all the time.
const maxGoAwayChance = 0.02

func (f *flags) addTo(set *pflag.FlagSet) {
	set.StringVar(&f.clusterIdentity, "cluster-identity", "", "identity of the garden, different from that of all others; required")
	set.StringVar(&f.logLevel, "log-level", logLevels[0], "least important messages that are logged: "+strings.Join(logLevels, ", "))
	set.StringVar(&f.logFormat, "log-format", logFormats[0], "form of the log: "+strings.Join(logFormats, ", "))
	set.DurationVar(&f.rotationInterval, "shoot-credentials-rotation-interval", 90*24*time.Hour,
		"age of the credentials of a shoot from which on updates of it get a warning to rotate them; at least "+minRotationInterval.String())
	set.DurationVar(&f.adminKubeconfigMax, "shoot-admin-kubeconfig-max-expiration", 24*time.Hour,
		"longest lifetime of the credentials that shoots/adminkubeconfig returns; at least "+minKubeconfigLifetime.String())
	set.DurationVar(&f.viewerKubeconfigMax, "shoot-viewer-kubeconfig-max-expiration", 24*time.Hour,
		"longest lifetime of the credentials that shoots/viewerkubeconfig returns; at least "+minKubeconfigLifetime.String())
	set.StringVar(&f.tokenIssuer, "workload-identity-token-issuer", "",
		"URL of the issuer of workload identity tokens; without it none are issued")
	set.StringVar(&f.tokenKeyFile, "workload-identity-signing-key-file", "",
		"file with the private key (PEM, RSA or ECDSA) that signs workload identity tokens")
	set.DurationVar(&f.tokenMin, "workload-identity-token-min-expiration", time.Hour,
		"shortest lifetime of workload identity tokens; at least "+minTokenLifetime.String())
	set.DurationVar(&f.tokenMax, "workload-identity-token-max-expiration", 48*time.Hour,
		"longest lifetime of workload identity tokens; at least "+minTokenLifetime.String())
	set.IntVar(&f.maxReads, "max-requests-inflight", 400, "limit of concurrent requests that read; priority and fairness distributes the sum of both limits")
	set.IntVar(&f.maxWrites, "max-mutating-requests-inflight", 200, "limit of concurrent requests that write")
	set.Float64Var(&f.goAwayChance, "goaway-chance", 0,
		fmt.Sprintf("chance, up to %g, that a client is requested to open another connection, so that clients move to other pods", maxGoAwayChance))
	f.klog = flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(f.klog)
	for _, name := range []string{"v", "vmodule"} {
		set.AddGoFlag(f.klog.Lookup(name))
	}
}

// verbose says whether flags ask for messages of higher verbosity than --log-level shows.
func (f *flags) verbose() bool {
	return f.logLevel != "error" && (f.klog.Lookup("v").Value.String() != "0" || f.klog.Lookup("vmodule").Value.String() != "")
}

// logger returns the logger for messages of the server. All of them come from klog, which decides on the verbosity.
func (f *flags) logger(w io.Writer) logr.Logger {
	if f.verbose() {
		return process.NewUnfilteredLogger(w, f.logFormat)
	}
	return process.NewLogger(w, f.logLevel, f.logFormat)
}

// applyTo sets what other options read when they are applied.
func (f *flags) applyTo(config *genericapiserver.Config) {
	config.MaxRequestsInFlight, config.MaxMutatingRequestsInFlight, config.GoawayChance = f.maxReads, f.maxWrites, f.goAwayChance
}

func (f *flags) validate() error {
	var errs []error
	if f.clusterIdentity == "" {
		errs = append(errs, errors.New("--cluster-identity: must be set"))
	}
	if !slices.Contains(logLevels, f.logLevel) {
		errs = append(errs, fmt.Errorf("--log-level=%s: must be one of %s", f.logLevel, strings.Join(logLevels, ", ")))
	}
	if !slices.Contains(logFormats, f.logFormat) {
		errs = append(errs, fmt.Errorf("--log-format=%s: must be one of %s", f.logFormat, strings.Join(logFormats, ", ")))
	}
	for _, d := range []struct {
		flag     string
		set, min time.Duration
	}{
		{"shoot-admin-kubeconfig-max-expiration", f.adminKubeconfigMax, minKubeconfigLifetime},
		{"shoot-viewer-kubeconfig-max-expiration", f.viewerKubeconfigMax, minKubeconfigLifetime},
		{"shoot-credentials-rotation-interval", f.rotationInterval, minRotationInterval},
		{"workload-identity-token-min-expiration", f.tokenMin, minTokenLifetime},
		{"workload-identity-token-max-expiration", f.tokenMax, minTokenLifetime},
	} {
		if d.set < d.min {
			errs = append(errs, fmt.Errorf("--%s=%s: must be at least %s", d.flag, d.set, d.min))
		}
	}
	for _, limit := range []struct {
		flag string
		set  int
	}{{"max-requests-inflight", f.maxReads}, {"max-mutating-requests-inflight", f.maxWrites}} {
		if limit.set < 0 {
			errs = append(errs, fmt.Errorf("--%s=%d: must not be negative", limit.flag, limit.set))
		}
	}
	if !(f.goAwayChance >= 0 && f.goAwayChance <= maxGoAwayChance) { // false for NaN
		errs = append(errs, fmt.Errorf("--goaway-chance=%g: must be between 0 and %g", f.goAwayChance, maxGoAwayChance))
	}
	if f.tokenMax < f.tokenMin {
		errs = append(errs, errors.New("--workload-identity-token-max-expiration: must not be below --workload-identity-token-min-expiration"))
	}
	if (f.tokenIssuer == "") != (f.tokenKeyFile == "") {
		errs = append(errs, errors.New("--workload-identity-token-issuer and --workload-identity-signing-key-file: set both or none"))
	}
	if f.tokenIssuer != "" {
		if issuer, err := url.Parse(f.tokenIssuer); err != nil || issuer.Scheme != "https" || issuer.Host == "" {
			errs = append(errs, fmt.Errorf("--workload-identity-token-issuer=%s: must be a URL with https", f.tokenIssuer))
		}
	}
	return errors.Join(errs...)
}

// settings are what the registry needs of the flags and of the assembled configuration.
func (f *flags) settings(
	config *genericapiserver.RecommendedConfig, gardenCache *registry.Reader, kubeAPI client.Reader, gates featuregate.FeatureGate,
) (registry.Settings, error) {
	var key crypto.PrivateKey
	if f.tokenKeyFile != "" {
		var err error
		if key, err = readKey(f.tokenKeyFile); err != nil {
			return registry.Settings{}, fmt.Errorf("--workload-identity-signing-key-file: %w", err)
		}
	}
	return registry.Settings{
		Core: registrycore.Settings{
			Validation: core.Options{
				CloudProfileCapabilities:       gates.Enabled(features.CloudProfileCapabilities),
				VersionClassificationLifecycle: gates.Enabled(features.VersionClassificationLifecycle),
				InPlaceNodeUpdates:             gates.Enabled(features.InPlaceNodeUpdates),
				DisableNginxIngressInShoot:     gates.Enabled(features.DisableNginxIngressInShoot),
			},
			RotationInterval:              f.rotationInterval,
			GardenCache:                   gardenCache,
			KubeAPI:                       kubeAPI,
			Authorizer:                    config.Authorization.Authorizer,
			Clock:                         clock.RealClock{},
			AdminKubeconfigMaxExpiration:  f.adminKubeconfigMax,
			ViewerKubeconfigMaxExpiration: f.viewerKubeconfigMax,
		},
		Security: security.Settings{
			GardenCache:        gardenCache,
			Clock:              clock.RealClock{},
			TokenIssuer:        f.tokenIssuer,
			TokenKey:           key,
			TokenMinExpiration: f.tokenMin,
			TokenMaxExpiration: f.tokenMax,
		},
	}, nil
}

func readKey(file string) (crypto.PrivateKey, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		return nil, fmt.Errorf("%s has no private key in PEM", file) // the cause could quote the file
	}
	return key, nil
}
