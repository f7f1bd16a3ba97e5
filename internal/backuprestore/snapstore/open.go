package snapstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/s3blob"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
)

// Providers of object stores in the configuration.
const (
	Local = "Local"
	S3    = "S3"
	ABS   = "ABS"
)

// Open returns the store that a configuration describes.
func Open(ctx context.Context, config *backuprestoreconfigv1alpha1.Store) (*Store, error) {
	return openWith(ctx, config, services{})
}

// services are those that exchange tokens of WorkloadIdentities, and how they are reached. The zero value is for those of the providers.
type services struct {
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
	case S3:
		return openS3(ctx, config, by)
	case ABS:
		return openABS(ctx, config, by)
	}
	return nil, fmt.Errorf("store of provider %q: supported are %s, %s and %s", config.Provider, ABS, Local, S3)
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
		value, err := credential(config, file.Name())
		if err != nil {
			return "", err
		}
		fmt.Fprintf(content, "%s=%q\n", file.Name(), value)
	}
	return content.String(), nil
}

// credential reads a key of the Secret with the credentials.
func credential(config *backuprestoreconfigv1alpha1.Store, key string) (string, error) {
	content, err := os.ReadFile(filepath.Join(config.CredentialsDir, key))
	return strings.TrimSpace(string(content)), err
}

// has reports whether the Secret with the credentials has a key.
func has(config *backuprestoreconfigv1alpha1.Store, key string) bool {
	_, err := os.Stat(filepath.Join(config.CredentialsDir, key))
	return err == nil
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
	keyRole           = "roleARN"
	keyAccessKeyID    = "accessKeyID"
	keySecretKey      = "secretAccessKey"
	keyEndpoint       = "endpoint"
	keyClient         = "clientID"
	keyTenant         = "tenantID"
	keyStorageAccount = "storageAccount"
	keyStorageKey     = "storageKey"
	keyDomain         = "domain"
)

// publicDomain is that of the blobs in the public cloud of Azure. Its other clouds, such as that in China, have others.
const publicDomain = "blob.core.windows.net"

// openS3 opens a bucket with the credentials that the extensions for S3 put in the Secret of a BackupEntry: the role and the token of a
// WorkloadIdentity, or an access key. They are read when a request needs them, because they rotate.
func openS3(ctx context.Context, config *backuprestoreconfigv1alpha1.Store, by services) (*blob.Bucket, error) {
	region, err := credential(config, "region")
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", config.Container, err)
	}
	var credentials aws.CredentialsProvider = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		id, idErr := credential(config, keyAccessKeyID)
		key, keyErr := credential(config, keySecretKey)
		return aws.Credentials{AccessKeyID: id, SecretAccessKey: key}, errors.Join(idErr, keyErr)
	})
	if has(config, keyRole) {
		if err := either(config, keyRole, keyAccessKeyID, keySecretKey); err != nil {
			return nil, err
		}
		role, err := credential(config, keyRole)
		if err != nil {
			return nil, fmt.Errorf("open bucket %s: %w", config.Container, err)
		}
		exchange := sts.New(sts.Options{Region: region}, func(o *sts.Options) {
			if by.sts != "" {
				o.BaseEndpoint = &by.sts
			}
		})
		// The cache gets others before these expire.
		credentials = aws.NewCredentialsCache(stscreds.NewWebIdentityRoleProvider(exchange, role, tokenFile{config}, func(o *stscreds.WebIdentityRoleOptions) {
			o.RoleSessionName = "etcd-backup-restore"
		}))
	}
	client := s3.New(s3.Options{Region: region, Credentials: credentials}, func(o *s3.Options) {
		endpoint := config.Endpoint
		if endpoint == "" {
			endpoint, _ = credential(config, keyEndpoint) // optional
		}
		if endpoint != "" {
			// Other stores with the same API rarely have a host name for each bucket.
			o.BaseEndpoint, o.UsePathStyle = &endpoint, true
		}
	})
	bucket, err := s3blob.OpenBucket(ctx, client, config.Container, nil)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", config.Container, err)
	}
	return bucket, nil
}

// tokenFile reads the token of a WorkloadIdentity, which the gardenlet renews.
type tokenFile struct {
	config *backuprestoreconfigv1alpha1.Store
}

// GetIdentityToken implements stscreds.IdentityTokenRetriever.
func (t tokenFile) GetIdentityToken() ([]byte, error) {
	token, err := credential(t.config, keyToken)
	return []byte(token), err
}

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
