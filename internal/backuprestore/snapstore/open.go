package snapstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/blob/fileblob"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
)

// Providers of object stores in the configuration.
const (
	Local = "Local"
	// ABS is Azure Blob Storage.
	ABS = "ABS"
	// GCS is Google Cloud Storage.
	GCS = "GCS"
	S3  = "S3"
	// ECS is Dell's Elastic Cloud Storage.
	ECS = "ECS"
	// OCS is OpenShift Container Storage.
	OCS = "OCS"
	// OSS is Alibaba Cloud's Object Storage Service.
	OSS = "OSS"
	// Swift is OpenStack's.
	Swift = "Swift"
)

// Open returns the store that a configuration describes.
func Open(ctx context.Context, config *backuprestoreconfigv1alpha1.Store) (*Store, error) {
	return openWith(ctx, config, services{})
}

// services are those of the providers, and how they are reached. The zero value is for the real ones.
type services struct {
	// transport reaches stores, other than that of Azure.
	transport http.RoundTripper
	// sts is the URL of the Security Token Service of AWS.
	sts string
	// azure are the authority and the transport for Azure.
	azure azcore.ClientOptions
}

func openWith(ctx context.Context, config *backuprestoreconfigv1alpha1.Store, by services) (*Store, error) {
	s := &Store{
		open:        func(ctx context.Context) (*blob.Bucket, error) { return openBucket(ctx, config, by) },
		credentials: func() (string, error) { return allCredentials(config) }, prefix: config.Prefix,
	}
	_, err := s.current(ctx)
	return s, err
}

func openBucket(ctx context.Context, config *backuprestoreconfigv1alpha1.Store, by services) (*blob.Bucket, error) {
	switch config.Provider {
	case Local:
		// A file gets its name when it is complete, so temporary ones must be on the same volume.
		bucket, err := fileblob.OpenBucket(config.Container, &fileblob.Options{
			CreateDir: true, DirFileMode: 0o700, NoTempDir: true, Metadata: fileblob.MetadataDontWrite,
		})
		if err != nil {
			return nil, fmt.Errorf("open store in %s: %w", config.Container, err)
		}
		return bucket, nil
	case ABS:
		return openABS(ctx, config, by)
	case GCS:
		return openGCS(ctx, config, by)
	case Swift:
		return openSwift(config, by)
	}
	if d, ok := dialects[config.Provider]; ok {
		return openS3(ctx, config, d, by)
	}
	return nil, fmt.Errorf("store of provider %q: supported are %s", config.Provider, strings.Join(backuprestoreconfigv1alpha1.StoreProviders, ", "))
}

// allCredentials returns what is in the Secret with the credentials, to be compared.
func allCredentials(config *backuprestoreconfigv1alpha1.Store) (string, error) {
	if config.CredentialsDir == "" {
		return "", nil
	}
	files, err := os.ReadDir(config.CredentialsDir)
	if err != nil {
		return "", err
	}
	content := &strings.Builder{}
	for _, file := range files {
		if strings.HasPrefix(file.Name(), "..") { // of the kubelet, which replaces all files at once
			continue
		}
		value, err := os.ReadFile(filepath.Join(config.CredentialsDir, file.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(content, "%s=%q\n", file.Name(), value)
	}
	return content.String(), nil
}

// credential reads a key of the Secret with the credentials, which has to be there.
func credential(config *backuprestoreconfigv1alpha1.Store, key string) (string, error) {
	content, err := os.ReadFile(filepath.Join(config.CredentialsDir, key))
	value := strings.TrimSpace(string(content))
	if config.CredentialsDir == "" || errors.Is(err, fs.ErrNotExist) || err == nil && value == "" {
		return "", fmt.Errorf("the credentials have no key %s", key)
	}
	return value, err
}

// required reports the keys that the Secret with the credentials does not have.
func required(config *backuprestoreconfigv1alpha1.Store, keys ...string) error {
	var errs []error
	for _, key := range keys {
		_, err := credential(config, key)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// optional reads a key of the Secret with the credentials. It is empty if it is not there; that all can be read was checked before.
func optional(config *backuprestoreconfigv1alpha1.Store, key string) string {
	if key == "" {
		return ""
	}
	value, _ := credential(config, key)
	return value
}

// flag reads a key of the Secret with the credentials that is true or false.
func flag(config *backuprestoreconfigv1alpha1.Store, key string, otherwise bool) (bool, error) {
	value := optional(config, key)
	if value == "" {
		return otherwise, nil
	}
	is, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("key %s of the credentials has to be true or false", key)
	}
	return is, nil
}

// has reports whether the Secret with the credentials has a key.
func has(config *backuprestoreconfigv1alpha1.Store, key string) bool {
	_, err := os.Stat(filepath.Join(config.CredentialsDir, key))
	return config.CredentialsDir != "" && err == nil
}

// transport returns the transport to a store, which may have its own certification authority, or none to be trusted: keySkip and keyCA are the keys of
// the Secret for that, if it has any.
func transport(config *backuprestoreconfigv1alpha1.Store, keySkip, keyCA string, by services) (http.RoundTripper, error) {
	if by.transport != nil {
		return by.transport, nil
	}
	t := http.DefaultTransport.(*http.Transport).Clone() // nobody replaces it
	t.DisableCompression = true                          // of what is compressed already; its length would be lost
	skip, err := flag(config, keySkip, false)
	if err != nil {
		return nil, err
	}
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: skip} //nolint:gosec // only on demand
	if bundle := optional(config, keyCA); bundle != "" {
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM([]byte(bundle)) {
			return nil, fmt.Errorf("key %s of the credentials has no certificate", keyCA)
		}
	}
	return t, nil
}

// either refuses a Secret that has both the token of a WorkloadIdentity and a static key: it does not say which one is valid.
func either(config *backuprestoreconfigv1alpha1.Store, identity string, static ...string) error {
	for _, key := range static {
		if has(config, key) {
			return fmt.Errorf("open %s: the credentials have both %s, for a WorkloadIdentity, and %s", config.Container, identity, key)
		}
	}
	return nil
}

// Keys of Secrets with credentials.
const (
	keyToken          = securityv1alpha1.DataKeyToken
	keyClient         = "clientID"
	keyTenant         = "tenantID"
	keyStorageAccount = "storageAccount"
	keyStorageKey     = "storageKey"
	keyDomain         = "domain"
)

// publicDomain is that of the blobs in the public cloud of Azure. Its other clouds, such as that in China, have others.
const publicDomain = "blob.core.windows.net"

// openABS opens a container of Azure Blob Storage with the token of a WorkloadIdentity, or with the key of its storage account.
func openABS(ctx context.Context, config *backuprestoreconfigv1alpha1.Store, by services) (*blob.Bucket, error) {
	account, err := credential(config, keyStorageAccount)
	if err != nil {
		return nil, fmt.Errorf("open container %s: %w", config.Container, err)
	}
	endpoint := config.Endpoint
	if endpoint == "" {
		domain, _ := credential(config, keyDomain) // optional
		endpoint = "https://" + account + "." + cmp.Or(domain, publicDomain)
	}
	connect := withStorageKey
	if has(config, keyToken) {
		connect = withToken
	}
	client, err := connect(config, account, strings.TrimSuffix(endpoint, "/")+"/"+config.Container, by)
	if err != nil {
		return nil, fmt.Errorf("open container %s: %w", config.Container, err)
	}
	bucket, err := azureblob.OpenBucket(ctx, client, nil)
	if err != nil {
		return nil, fmt.Errorf("open container %s: %w", config.Container, err)
	}
	return bucket, nil
}

func withStorageKey(config *backuprestoreconfigv1alpha1.Store, account, url string, by services) (*container.Client, error) {
	key, err := credential(config, keyStorageKey)
	if err != nil {
		return nil, err
	}
	shared, err := container.NewSharedKeyCredential(account, key)
	if err != nil {
		return nil, errors.New("the storage key is not in base64") // the error may quote it
	}
	return container.NewClientWithSharedKeyCredential(url, shared, &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: by.azure.Transport}})
}

// withToken exchanges the token of a WorkloadIdentity for one of its application, whenever that expires.
func withToken(config *backuprestoreconfigv1alpha1.Store, _, url string, by services) (*container.Client, error) {
	if err := either(config, keyToken, keyStorageKey); err != nil {
		return nil, err
	}
	tenant, tenantErr := credential(config, keyTenant)
	id, idErr := credential(config, keyClient)
	if err := errors.Join(tenantErr, idErr); err != nil {
		return nil, err
	}
	assertion := func(context.Context) (string, error) { return credential(config, keyToken) }
	application, err := azidentity.NewClientAssertionCredential(tenant, id, assertion, &azidentity.ClientAssertionCredentialOptions{
		// An authority of its own is not one that Microsoft knows.
		ClientOptions: by.azure, DisableInstanceDiscovery: by.azure.Cloud.ActiveDirectoryAuthorityHost != "",
	})
	if err != nil {
		return nil, err
	}
	return container.NewClient(url, application, &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: by.azure.Transport}})
}
