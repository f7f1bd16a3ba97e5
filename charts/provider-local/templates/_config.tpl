{{/* garden is not empty if the chart is for the garden itself, in its runtime cluster: gardener-operator says so, with a string. */}}
{{- define "garden" -}}
{{- with (.Values.gardener).runtimeCluster }}{{ if eq (toString .enabled) "true" }}true{{ end }}{{ end }}
{{- end -}}
{{- define "config" -}}
apiVersion: providerlocal.config.gardener.cloud/v1alpha1
kind: ProviderLocalConfiguration
namespace: {{ .Release.Namespace }}
logLevel: {{ .Values.logLevel }}
server:
  healthProbes: {port: 8081}
  metrics: {port: 8080}
{{- if not (include "garden" .) }}
  webhooks: {port: 8443, service: {{ .Release.Name }}-webhook}
{{- end }}
dns:
  port: 8053
  zones: {{ toJson .Values.dns.zones }}
backup:
  directory: /backups
  hostPath: {{ .Values.backup.hostPath }}
{{- if not (include "garden" .) }}
machines:
  registries: {{ toJson .Values.machines.registries }}
{{- with .Values.machines.ipv6Network }}
  ipv6Network: {{ toJson . }}
{{- end }}
images:
  gardener: {{ .Values.image }}
  flannel: {{ toJson .Values.images.flannel }}
  crun: {{ toJson .Values.images.crun }}
  localStorage: {{ toJson .Values.images.localStorage }}
{{- end }}
{{- end -}}
