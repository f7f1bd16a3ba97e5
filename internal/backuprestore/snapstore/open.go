package snapstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/s3blob"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
)

// Providers of object stores in the configuration.
const (
	Local = "Local"
	S3    = "S3"
	ABS   = "ABS"
)

// Open returns the store that a configuration describes.
func Open(ctx context.Context, config *backuprestoreconfigv1alpha1.Store) (*Store, error) {
	switch config.Provider {
	case Local:
		// A file gets its name when it is complete, so temporary ones must be on the same volume.
		bucket, err := fileblob.OpenBucket(config.Container, &fileblob.Options{
			CreateDir: true, DirFileMode: 0o700, NoTempDir: true, Metadata: fileblob.MetadataDontWrite,
		})
		if err != nil {
			return nil, fmt.Errorf("open store in %s: %w", config.Container, err)
		}
		return New(bucket, config.Prefix), nil
	case S3:
		return openS3(ctx, config)
	case ABS:
		return openABS(ctx, config)
	}
	return nil, fmt.Errorf("store of provider %q: supported are %s, %s and %s", config.Provider, ABS, Local, S3)
}

// credential reads a key of the Secret with the credentials.
func credential(config *backuprestoreconfigv1alpha1.Store, key string) (string, error) {
	content, err := os.ReadFile(filepath.Join(config.CredentialsDir, key))
	return strings.TrimSpace(string(content)), err
}

// openS3 opens a bucket with the credentials that the extensions for S3 put in the Secret of a BackupEntry. They are read
// when a request needs them, because they rotate.
func openS3(ctx context.Context, config *backuprestoreconfigv1alpha1.Store) (*Store, error) {
	region, err := credential(config, "region")
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", config.Container, err)
	}
	client := s3.New(s3.Options{
		Region: region,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			id, idErr := credential(config, "accessKeyID")
			key, keyErr := credential(config, "secretAccessKey")
			return aws.Credentials{AccessKeyID: id, SecretAccessKey: key}, errors.Join(idErr, keyErr)
		}),
	}, func(o *s3.Options) {
		if config.Endpoint != "" {
			// Other stores with the same API rarely have a host name for each bucket.
			o.BaseEndpoint, o.UsePathStyle = aws.String(config.Endpoint), true
		}
	})
	bucket, err := s3blob.OpenBucket(ctx, client, config.Container, nil)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", config.Container, err)
	}
	return New(bucket, config.Prefix), nil
}

// openABS opens a container of Azure Blob Storage with the key of its storage account.
func openABS(ctx context.Context, config *backuprestoreconfigv1alpha1.Store) (*Store, error) {
	account, accountErr := credential(config, "storageAccount")
	key, keyErr := credential(config, "storageKey")
	if err := errors.Join(accountErr, keyErr); err != nil {
		return nil, fmt.Errorf("open container %s: %w", config.Container, err)
	}
	shared, err := container.NewSharedKeyCredential(account, key)
	if err != nil {
		return nil, fmt.Errorf("open container %s: the storage key is not in base64", config.Container) // the error may quote it
	}
	endpoint := config.Endpoint
	if endpoint == "" {
		endpoint = "https://" + account + ".blob.core.windows.net"
	}
	client, err := container.NewClientWithSharedKeyCredential(strings.TrimSuffix(endpoint, "/")+"/"+config.Container, shared, nil)
	if err != nil {
		return nil, fmt.Errorf("open container %s: %w", config.Container, err)
	}
	bucket, err := azureblob.OpenBucket(ctx, client, nil)
	if err != nil {
		return nil, fmt.Errorf("open container %s: %w", config.Container, err)
	}
	return New(bucket, config.Prefix), nil
}
