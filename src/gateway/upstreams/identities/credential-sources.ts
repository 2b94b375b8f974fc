/**
 * Requests credentials through the libraries of the clouds, and from IBM Cloud by a request of its own. A
 * library is loaded with the first request, and each request begins anew, so that files, variables and roles
 * are read again.
 */
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { numberOf, objectOf, stringOf } from '../../../base/json.js'
import type { IdentityConfig } from '../../../config/config.js'

/** Credentials as a cloud issued them. */
export interface Issued {
  readonly credentials: Credentials
  /** Null: they do not expire. */
  readonly expiresAtMs: number | null
}

/** Requests new credentials. */
export type CredentialSource = () => Promise<Issued>

/** Credentials of a request: keys that sign it, or a token. */
export type Credentials = AwsKeys | BearerToken

/** Keys for Signature Version 4. */
export interface AwsKeys {
  readonly keyId: string
  readonly secret: string
  /** Null for keys of a user. */
  readonly sessionToken: string | null
}

/** A token for `authorization: Bearer`. */
export interface BearerToken {
  readonly token: string
  /** Google: the project that pays, as the credentials name it; null if they name none. */
  readonly quotaProject: string | null
}

type AwsIdentity = IdentityConfig & { readonly cloud: 'aws' }
type GoogleIdentity = IdentityConfig & { readonly cloud: 'google' }
type AzureIdentity = IdentityConfig & { readonly cloud: 'azure' }
type IbmIdentity = IdentityConfig & { readonly cloud: 'ibm' }

/** The source of an identity. `region` is that of the STS endpoint. Loads nothing. */
export function sourceOf(auth: IdentityConfig, region: string | null): CredentialSource {
  switch (auth.cloud) {
    case 'aws':
      return () => awsKeys(auth, region)
    case 'google':
      return () => googleToken(auth)
    case 'azure':
      return () => azureToken(auth)
    case 'ibm':
      return () => ibmToken(auth)
    default:
      return auth satisfies never
  }
}

/** Maximum times of the requests of AWS's libraries; the identity has a deadline of its own. */
const HTTP_LIMITS = {
  connectionTimeout: 3_000,
  requestTimeout: 5_000,
  throwOnRequestTimeout: true,
}
const METADATA_LIMITS = { timeout: 2_000, maxRetries: 1 }
/** The library only writes a line to the console when this has passed; the identity's deadline is shorter. */
const CONTAINER_LIMITS = { timeout: 15_000, maxRetries: 1 }

async function awsKeys(auth: AwsIdentity, region: string | null): Promise<Issued> {
  const { accessKeyId, secretAccessKey, sessionToken } = auth
  if (accessKeyId !== null && secretAccessKey !== null) {
    return {
      credentials: { keyId: accessKeyId, secret: secretAccessKey, sessionToken },
      expiresAtMs: null,
    }
  }
  // Its notice about later versions of Node is of no use to an operator: the version is pinned.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true'
  const library = await import('@aws-sdk/credential-providers')
  const clientConfig = {
    ...(region === null ? {} : { region }),
    maxAttempts: 2,
    requestHandler: HTTP_LIMITS,
  }
  const { profile, roleArn, externalId, sessionName } = auth
  const { AWS_CONTAINER_CREDENTIALS_FULL_URI: full, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: path } =
    process.env
  const limits = (full ?? path) === undefined ? METADATA_LIMITS : CONTAINER_LIMITS
  // The library keeps the shared files in memory, in which a program may have replaced the keys.
  const options = { clientConfig, ignoreCache: true }
  const chain =
    profile === null
      ? library.fromNodeProviderChain({ ...options, ...limits })
      : library.fromIni({ ...options, profile })
  const provider =
    roleArn === null
      ? chain
      : library.fromTemporaryCredentials({
          masterCredentials: chain,
          clientConfig,
          params: {
            RoleArn: roleArn,
            RoleSessionName: sessionName ?? 'sluice',
            ...(externalId === null ? {} : { ExternalId: externalId }),
          },
        })
  const keys = await provider()
  return {
    credentials: {
      keyId: keys.accessKeyId,
      secret: keys.secretAccessKey,
      sessionToken: keys.sessionToken ?? null,
    },
    expiresAtMs: keys.expiration?.getTime() ?? null,
  }
}

const GOOGLE_SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
/** The token address that google-auth-library uses instead of the file's `token_uri`. */
const GOOGLE_TOKEN_URL = 'https://oauth2.googleapis.com/token'
/** For credentials that do not tell when they expire. */
const ASSUMED_LIFE_MS = 300_000

async function googleToken({ credentialsFile, project }: GoogleIdentity): Promise<Issued> {
  const { GoogleAuth } = await import('google-auth-library')
  const tokenUri = await tokenUriOf(credentialsFile)
  // Without a project, external accounts ask the resource manager for one.
  const auth = new GoogleAuth({
    scopes: GOOGLE_SCOPE,
    ...(project === null ? {} : { projectId: project }),
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- the file is the operator's own
    ...(credentialsFile === null ? {} : { keyFile: credentialsFile }),
  })
  const client = await auth.getClient()
  client.transporter.interceptors.request.add({
    resolved: (request) => {
      if (tokenUri !== null && String(request.url) === GOOGLE_TOKEN_URL) {
        request.url = new URL(tokenUri)
      }
      // The identity retries with a back-off of its own.
      request.retry = false
      request.retryConfig = { retry: 0, noResponseRetries: 0 }
      return Promise.resolve(request)
    },
  })
  const { token } = await client.getAccessToken()
  return {
    credentials: { token: token ?? '', quotaProject: client.quotaProjectId ?? null },
    expiresAtMs: client.credentials.expiry_date ?? Date.now() + ASSUMED_LIFE_MS,
  }
}

/** The `token_uri` of the credentials' file; null if it has none, or there is no file. */
async function tokenUriOf(credentialsFile: string | null): Promise<string | null> {
  const { GOOGLE_APPLICATION_CREDENTIALS: named, CLOUDSDK_CONFIG: config } = process.env
  const gcloud = config ?? join(homedir(), '.config', 'gcloud')
  const file = credentialsFile ?? named ?? join(gcloud, 'application_default_credentials.json')
  try {
    const content: unknown = JSON.parse(await readFile(file, 'utf8'))
    const hasUri = typeof content === 'object' && content !== null && 'token_uri' in content
    const uri = hasUri ? content.token_uri : null
    return typeof uri === 'string' && URL.canParse(uri) ? uri : null
  } catch {
    // The library reports a missing or invalid file.
    return null
  }
}

/** Authorities of Microsoft. MSAL sends requests to Microsoft about unknown ones. */
const MICROSOFT = /(?:^|\.)(?:microsoftonline\.(?:com|us)|chinacloudapi\.cn|windows\.net)$/

async function azureToken({ tenantId, clientId, clientSecret, scope }: AzureIdentity): Promise<Issued> {
  const library = await import('@azure/identity')
  const { AZURE_AUTHORITY_HOST: authority = '', AZURE_FEDERATED_TOKEN_FILE: federated } = process.env
  const isOther = URL.canParse(authority) && !MICROSOFT.test(new URL(authority).hostname)
  const options = {
    retryOptions: { maxRetries: 1 },
    ...(authority === '' ? {} : { authorityHost: authority }),
    ...(isOther ? { disableInstanceDiscovery: true } : {}),
  }
  const own = process.env['AZURE_CLIENT_ID']
  const credential =
    tenantId !== null && clientId !== null && clientSecret !== null
      ? new library.ClientSecretCredential(tenantId, clientId, clientSecret, options)
      : new library.ChainedTokenCredential(
          new library.EnvironmentCredential(options),
          ...(federated === undefined ? [] : [new library.WorkloadIdentityCredential(options)]),
          new library.ManagedIdentityCredential(own === undefined ? options : { ...options, clientId: own }),
        )
  const { token, expiresOnTimestamp } = await credential.getToken(scope)
  return { credentials: { token, quotaProject: null }, expiresAtMs: expiresOnTimestamp }
}

const IBM_LIMIT_MS = 8_000

/**
 * Exchanges the API key for a token.
 * Source: IBM Cloud, "Generating an IBM Cloud IAM token by using an API key", read 2026-11-30.
 */
async function ibmToken({ apiKey, tokenUrl }: IbmIdentity): Promise<Issued> {
  const reply = await fetch(tokenUrl, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'urn:ibm:params:oauth:grant-type:apikey', apikey: apiKey }),
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: AbortSignal.timeout(IBM_LIMIT_MS),
  })
  const text = await reply.text()
  // `errorMessage` may repeat the key's id; the code names the fault.
  if (!reply.ok)
    throw new Error(`IAM answers ${String(reply.status)} ${/BXN\w+/.exec(text)?.[0] ?? ''}`.trimEnd())
  const { access_token: token, expiration } = objectOf(JSON.parse(text))
  const expiresAtMs = (numberOf(expiration) ?? 0) * 1_000 || Date.now() + ASSUMED_LIFE_MS
  return { credentials: { token: stringOf(token) ?? '', quotaProject: null }, expiresAtMs }
}
