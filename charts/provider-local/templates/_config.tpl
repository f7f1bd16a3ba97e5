{{- define "config" -}}
apiVersion: providerlocal.config.gardener.cloud/v1alpha1
kind: ProviderLocalConfiguration
namespace: {{ .Release.Namespace }}
logLevel: {{ .Values.logLevel }}
server:
  healthProbes: {port: 8081}
  metrics: {port: 8080}
dns:
  port: 8053
  zones: {{ toJson .Values.dns.zones }}
backup:
  directory: /backups
  hostPath: {{ .Values.backup.hostPath }}
machines:
  registries: {{ toJson .Values.machines.registries }}
images:
  gardener: {{ .Values.image }}
  flannel: {{ toJson .Values.images.flannel }}
{{- end -}}
