package snapstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
)

// Keys of Secrets with credentials for stores with the API of S3.
const (
	keyRegion           = "region"
	keyRole             = "roleARN"
	keyAccessKeyID      = "accessKeyID"
	keySecretKey        = "secretAccessKey"
	keySecretKeyOSS     = "accessKeySecret"
	keyEndpoint         = "endpoint"
	keyEndpointOSS      = "storageEndpoint"
	keyPathStyle        = "s3ForcePathStyle"
	keyNoTLS            = "disableSSL"
	keySkipVerify       = "insecureSkipVerify"
	keyTrusted          = "trustedCaCert"
	keyEncryption       = "sseCustomerKey"
	keyEncryptionMethod = "sseCustomerAlgorithm"
)

// dialect is what differs between stores with the API of S3.
type dialect struct {
	// secretKey and endpoint are the names of these keys in the Secret.
	secretKey, endpoint string
	// region is for stores that have none. If it is empty, it is in the Secret, or part of the endpoint.
	region string
	// elsewhere is for stores that are not found by their region: they need an endpoint.
	elsewhere bool
	// hosts is for stores that have a host name for each bucket, and accept no others.
	hosts bool
}

var dialects = map[string]dialect{
	S3:  {secretKey: keySecretKey, endpoint: keyEndpoint},
	OCS: {secretKey: keySecretKey, endpoint: keyEndpoint, elsewhere: true},
	ECS: {secretKey: keySecretKey, endpoint: keyEndpoint, elsewhere: true, region: "US-Standard"},
	OSS: {secretKey: keySecretKeyOSS, endpoint: keyEndpointOSS, elsewhere: true, hosts: true},
}

// openS3 opens a bucket with the credentials that extensions put in the Secret of a BackupEntry: the role and the token of a WorkloadIdentity,
// or an access key. They are read when a request needs them, because they rotate.
func openS3(ctx context.Context, config *backuprestoreconfigv1alpha1.Store, d dialect, by services) (*blob.Bucket, error) {
	options, err := s3Options(config, d, by)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", config.Container, err)
	}
	// Uploads in parts have the option once more.
	bucket, err := s3blob.OpenBucket(ctx, s3.New(options), config.Container, &s3blob.Options{RequestChecksumCalculation: options.RequestChecksumCalculation})
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", config.Container, err)
	}
	return bucket, nil
}

func s3Options(config *backuprestoreconfigv1alpha1.Store, d dialect, by services) (options s3.Options, err error) {
	for _, key := range []string{keyEncryption, keyEncryptionMethod} {
		if has(config, key) { // without it, backups would be stored in another form than wanted
			return options, fmt.Errorf("the credentials have the key %s, which is not supported", key)
		}
	}
	if options.BaseEndpoint, options.Region, err = place(config, d); err != nil {
		return options, err
	}
	if options.BaseEndpoint != nil {
		// Other stores with the same API rarely have a host name for each bucket. And they need not know checksums after the content, which S3's
		// clients send by default.
		if options.UsePathStyle, err = flag(config, keyPathStyle, !d.hosts); err != nil {
			return options, err
		}
		options.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		options.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	}
	if by.transport != nil || has(config, keySkipVerify) || has(config, keyTrusted) { // otherwise, S3's clients have their own
		transport, err := transport(config, keySkipVerify, keyTrusted, by)
		if err != nil {
			return options, err
		}
		options.HTTPClient = &http.Client{Transport: transport}
	}
	options.Credentials, err = s3Credentials(config, d, options.Region, by)
	return options, err
}

// place returns where a store is: its endpoint, if it is not the usual one of the region, and its region.
func place(config *backuprestoreconfigv1alpha1.Store, d dialect) (endpoint *string, region string, err error) {
	address := cmp.Or(config.Endpoint, optional(config, d.endpoint))
	if address == "" && d.elsewhere {
		return nil, "", required(config, d.endpoint)
	}
	if address != "" && !strings.Contains(address, "://") {
		scheme := "https://"
		if plain, err := flag(config, keyNoTLS, false); err != nil {
			return nil, "", err
		} else if plain {
			scheme = "http://"
		}
		address = scheme + address
	}
	region = cmp.Or(optional(config, keyRegion), d.region)
	if d.hosts {
		var regionOfHost string
		if address, regionOfHost, err = aliyun(address); err != nil {
			return nil, "", fmt.Errorf("endpoint: %w", err)
		}
		region = cmp.Or(region, regionOfHost)
	}
	if region == "" {
		return nil, "", required(config, keyRegion)
	}
	if address == "" {
		return nil, region, nil
	}
	return &address, region, nil
}

// aliyun returns the endpoint with the API of S3 for one of Alibaba Cloud, as https://oss-eu-central-1.aliyuncs.com, and its region. Others, such as a
// domain of the user, are kept; there the region that S3's clients take by default is right.
func aliyun(endpoint string) (string, string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", "", err
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	service, ok := strings.CutSuffix(u.Host, ".aliyuncs.com")
	region, isOSS := strings.CutPrefix(strings.TrimPrefix(service, "s3."), "oss-")
	if !ok || !isOSS {
		return u.String(), "us-east-1", nil
	}
	u.Host = "s3.oss-" + region + ".aliyuncs.com"
	return u.String(), strings.TrimSuffix(region, "-internal"), nil
}

func s3Credentials(config *backuprestoreconfigv1alpha1.Store, d dialect, region string, by services) (aws.CredentialsProvider, error) {
	if config.Provider != S3 || !has(config, keyRole) {
		return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			id, idErr := credential(config, keyAccessKeyID)
			key, keyErr := credential(config, d.secretKey)
			return aws.Credentials{AccessKeyID: id, SecretAccessKey: key}, errors.Join(idErr, keyErr)
		}), required(config, keyAccessKeyID, d.secretKey)
	}
	if err := either(config, keyRole, keyAccessKeyID, keySecretKey); err != nil {
		return nil, err
	}
	role, err := credential(config, keyRole)
	if err != nil {
		return nil, err
	}
	exchange := sts.New(sts.Options{Region: region}, func(o *sts.Options) {
		if by.sts != "" {
			o.BaseEndpoint = &by.sts
		}
	})
	// The cache gets others before these expire.
	return aws.NewCredentialsCache(stscreds.NewWebIdentityRoleProvider(exchange, role, tokenFile{config}, func(o *stscreds.WebIdentityRoleOptions) {
		o.RoleSessionName = "etcd-backup-restore"
	})), nil
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
