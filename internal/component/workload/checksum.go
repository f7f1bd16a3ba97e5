package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// Checksum returns a checksum of contents, for annotations.
func Checksum(contents ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(contents, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// ChecksumOfData returns a checksum of the data of a Secret, or of another value by its JSON.
func ChecksumOfData(data any) (string, error) {
	text, err := json.Marshal(data) // with sorted keys
	return Checksum(string(text)), err
}
