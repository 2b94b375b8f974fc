/** A gateway whose dashboard uses an identity provider for sign-in. */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import type { Test } from 'tap'
import {
  CLIENT_ID,
  CLIENT_SECRET,
  startProvider,
  type ProviderSettings,
  type TestProvider,
} from './identity-provider.js'
import type { GatewaySettings } from '../../helpers/gateway.js'
import { startStage, type Stage } from '../../dashboard/fixtures/stage.js'

/** The gateway and its provider. */
export interface Scene extends Stage {
  readonly provider: TestProvider
  /** Applies another `dashboard` section; `more` is YAML of its `oidc`, `rest` of the section. */
  configure(settings: {
    more?: string
    rest?: string
    issuer?: string
    publicUrl?: string
    hasProvider?: boolean
    /** More sections of the file. */
    top?: string
  }): void
}

/** Starts both; `settings` are the provider's. */
export async function scene(
  t: Test,
  settings: ProviderSettings = { emailInToken: false },
  gatewaySettings: GatewaySettings = {},
): Promise<Scene> {
  const stage = await startStage(t, gatewaySettings)
  const { origin, gateway } = stage
  const provider = await startProvider(t, () => `${origin}/dashboard/oidc`, settings)
  const plain = readFileSync(gateway.configFile, 'utf8')
  const configure: Scene['configure'] = ({
    more = '',
    rest = '',
    hasProvider = true,
    top = '',
    ...others
  }) => {
    const { issuer, publicUrl = origin } = others
    writeFileSync(gateway.configFile, plain)
    const door = `issuer: "${issuer ?? provider.issuer}", client_id: ${CLIENT_ID}, client_secret: ${CLIENT_SECRET}`
    const oidc = hasProvider ? `, oidc: { ${door}, name: Acme${more} }` : ''
    const end = rest === '' ? '' : `, ${rest}`
    appendFileSync(gateway.configFile, `dashboard: { public_url: "${publicUrl}"${oidc}${end} }\n${top}\n`)
    gateway.reload()
  }
  configure({})
  return { ...stage, provider, configure }
}
