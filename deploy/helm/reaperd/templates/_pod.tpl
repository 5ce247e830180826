{{/* The pod of the daemon and of the CronJob. */}}
{{- define "reaperd.pod" -}}
serviceAccountName: {{ include "reaperd.name" . }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  {{- with .Values.registry.supplementalGroups }}
  supplementalGroups:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
containers:
  - name: reaperd
    image: {{ include "reaperd.image" . }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args:
      - {{ ternary "once" "run" (ne .Values.schedule "") }}
    {{- with .Values.env }}
    env:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.envFrom }}
    envFrom:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities:
        drop:
          - ALL
    {{- if not .Values.schedule }}
    ports:
      - name: http
        containerPort: 9745
        protocol: TCP
    startupProbe:
      httpGet:
        path: /healthz
        port: http
      periodSeconds: 2
      failureThreshold: 60
    # A long sweep is no reason to begin anew: two minutes.
    livenessProbe:
      httpGet:
        path: /healthz
        port: http
      periodSeconds: 20
      failureThreshold: 6
      timeoutSeconds: 5
    readinessProbe:
      httpGet:
        path: /readyz
        port: http
      periodSeconds: 10
      timeoutSeconds: 5
    {{- end }}
    resources:
      {{- toYaml .Values.resources | nindent 6 }}
    volumeMounts:
      - name: config
        mountPath: /etc/reaperd
        readOnly: true
      - name: ledger
        mountPath: /var/lib/reaperd
      # The folder, and never the file alone: the newest rows stand beside it.
      - name: registry
        mountPath: {{ .Values.registry.mountPath }}
        readOnly: true
      - name: tmp
        mountPath: /tmp
volumes:
  - name: config
    configMap:
      name: {{ include "reaperd.name" . }}
  - name: ledger
    persistentVolumeClaim:
      claimName: {{ .Values.ledger.existingClaim | default (printf "%s-ledger" (include "reaperd.name" .)) }}
  # The control plane's. Read-only as a volume too, or its files would be given to the group of this pod.
  - name: registry
    persistentVolumeClaim:
      claimName: {{ .Values.registry.existingClaim }}
      readOnly: true
  - name: tmp
    emptyDir:
      medium: Memory
      sizeLimit: 16Mi
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
