/** Builds the headers that every request to an upstream carries. */
import type { UpstreamConfig } from '../config/config.js'
import type { UpstreamCodec } from '../formats/dialect.js'

/** The headers of the upstream's credential and configuration. */
export function ownHeaders(
  config: UpstreamConfig,
  upstreamCodec: UpstreamCodec,
  apiKey: string | null = config.apiKeys[0] ?? null,
): Record<string, string> {
  return { ...credentialOf(config, upstreamCodec, apiKey), ...config.headers }
}

function credentialOf(
  { keyHeader }: UpstreamConfig,
  upstreamCodec: UpstreamCodec,
  apiKey: string | null,
): Record<string, string> {
  if (apiKey === null) return {}
  return keyHeader === null ? upstreamCodec.credential(apiKey) : { [keyHeader]: apiKey }
}

/**
 * Name, value, … of every request. Built only from constants and the configuration: values of clients could
 * inject headers (CVE-2026-1525).
 */
export function fixedHeaders(
  config: UpstreamConfig,
  upstreamCodec: UpstreamCodec,
  apiKey: string | null,
): readonly string[] {
  const headers = ['content-type', 'application/json', 'accept-encoding', 'identity']
  for (const [name, value] of Object.entries(ownHeaders(config, upstreamCodec, apiKey))) {
    headers.push(name, value)
  }
  return headers
}
