/**
 * How the whole gateway stands, as far as one process has to ask another for it. Small enough to be sent
 * between processes, and loads nothing.
 */

/** What the process that reads the configuration knows. */
export interface Outlook {
  /** Requests that are with each upstream now, all processes of this machine together. */
  readonly inFlight: Readonly<Record<string, number>>
  /** The last file that was not taken, if that was after the one in force was loaded. */
  readonly refused: { readonly atMs: number; readonly problems: readonly string[] } | null
}

/** From all processes' metrics, in Prometheus's text format, and what became of the last file. */
export function outlookOf(metrics: string, refused: Outlook['refused']): Outlook {
  const inFlight: Record<string, number> = {}
  for (const [, upstream = '', count] of metrics.matchAll(
    /^sluice_inflight\{[^}]*upstream="([^"]+)"[^}]*\} (\d+)/gm,
  )) {
    inFlight[upstream] = Number(count)
  }
  return { inFlight, refused }
}

/** Whether what another process sent is one. */
export function isOutlook(value: unknown): value is Outlook {
  return typeof value === 'object' && value !== null && 'inFlight' in value && 'refused' in value
}
