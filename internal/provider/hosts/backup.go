package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/generic"
)

// storeType is the type of BackupBuckets and BackupEntries, and the provider of etcd-backup-restore.
const storeType = "S3"

// Keys of the Secret of a BackupBucket, which are those of etcd-backup-restore.
const (
	endpointKey, regionKey      = "endpoint", "region"
	accessKeyIDKey, secretIDKey = "accessKeyID", "secretAccessKey"
	// usualRegion is the region that is not named when a bucket is created. Stores of other vendors know it, too.
	usualRegion = "us-east-1"
)

// stores are object stores with the API of S3.
type stores struct{ client client.Client }

// open returns a client of the store whose credentials are in a Secret.
func (a *stores) open(ctx context.Context, ref corev1.SecretReference, region string) (*s3.Client, error) {
	secret := &corev1.Secret{}
	if err := a.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
		return nil, fmt.Errorf("read Secret %q: %w", ref.Name, err)
	}
	value := func(key string) string { return strings.TrimSpace(string(secret.Data[key])) }
	if value(accessKeyIDKey) == "" || value(secretIDKey) == "" {
		err := fmt.Errorf("Secret %q: keys %s and %s are required", ref.Name, accessKeyIDKey, secretIDKey)
		return nil, errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
	}
	return s3.New(s3.Options{
		Region: cmp.Or(value(regionKey), region), RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: value(accessKeyIDKey), SecretAccessKey: value(secretIDKey)}, nil
		}),
	}, func(o *s3.Options) {
		if endpoint := value(endpointKey); endpoint != "" {
			// Other stores with the same API rarely have a host name for each bucket.
			o.BaseEndpoint, o.UsePathStyle = &endpoint, true
		}
	}), nil
}

// backupBuckets reconciles BackupBuckets.
type backupBuckets struct{ stores }

// Reconcile creates the bucket.
func (a *backupBuckets) Reconcile(ctx context.Context, bucket *extensionsv1alpha1.BackupBucket, _ *extension.Cluster) error {
	store, err := a.open(ctx, bucket.Spec.SecretRef, bucket.Spec.Region)
	if err != nil {
		return err
	}
	_, err = store.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &bucket.Name})
	if missing(err) {
		input := &s3.CreateBucketInput{Bucket: &bucket.Name}
		if region := store.Options().Region; region != usualRegion {
			input.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(region)}
		}
		_, err = store.CreateBucket(ctx, input)
	}
	return withCode(err, "create bucket "+bucket.Name)
}

// Delete deletes the bucket with all backups.
func (a *backupBuckets) Delete(ctx context.Context, bucket *extensionsv1alpha1.BackupBucket, _ *extension.Cluster) error {
	store, err := a.open(ctx, bucket.Spec.SecretRef, bucket.Spec.Region)
	if err != nil {
		return err
	}
	if err := empty(ctx, store, bucket.Name, ""); err != nil {
		return err
	}
	if _, err = store.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &bucket.Name}); missing(err) {
		return nil
	}
	return withCode(err, "delete bucket "+bucket.Name)
}

// backupEntries is the actuator of BackupEntries.
func backupEntries(c client.Client) *generic.BackupEntry {
	return &generic.BackupEntry{
		Client: c, Owner: Name,
		Secret: func(_ context.Context, entry *extensionsv1alpha1.BackupEntry, data map[string][]byte) error {
			if len(data[regionKey]) == 0 {
				data[regionKey] = []byte(entry.Spec.Region)
			}
			return nil
		},
		DeleteBackups: func(ctx context.Context, entry *extensionsv1alpha1.BackupEntry) error {
			store, err := (&stores{c}).open(ctx, entry.Spec.SecretRef, entry.Spec.Region)
			if err != nil {
				return err
			}
			return empty(ctx, store, entry.Spec.BucketName, generic.BackupPrefix(entry)+"/")
		},
	}
}

// empty deletes the objects of a bucket whose names begin with a prefix. A bucket that does not exist is empty.
func empty(ctx context.Context, store *s3.Client, bucket, prefix string) error {
	pages := s3.NewListObjectsV2Paginator(store, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if missing(err) {
			return nil
		}
		if err != nil {
			return withCode(err, "list the objects of bucket "+bucket)
		}
		for _, object := range page.Contents {
			if _, err := store.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: object.Key}); err != nil {
				return withCode(err, "delete an object of bucket "+bucket)
			}
		}
	}
	return nil
}

func missing(err error) bool { return isAny(err, "NotFound", "NoSuchBucket") }

func isAny(err error, codes ...string) bool {
	var api smithy.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode())
}

// withCode returns an error of a store with what its owner can do about it.
func withCode(err error, what string) error {
	switch {
	case err == nil:
		return nil
	case isAny(err, "InvalidAccessKeyId", "SignatureDoesNotMatch"):
		return errorcode.With(fmt.Errorf("%s: %w", what, err), corev1beta1.ErrorInfraUnauthenticated)
	case isAny(err, "AccessDenied", "Forbidden", "BucketAlreadyExists"):
		return errorcode.With(fmt.Errorf("%s: %w", what, err), corev1beta1.ErrorInfraUnauthorized)
	}
	return fmt.Errorf("%s: %w", what, err)
}
