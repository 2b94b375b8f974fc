/**
 * The cloud platform of an upstream: its keys in the file, the combinations of platform, dialect and
 * credential that exist, and the address that follows from them. Part of `config-file-schema.ts` and
 * `resolve-upstream.ts`.
 */
import * as z from 'zod'
import type { DialectName } from '../formats/dialect.js'
import type { Path, ReportFinding } from './config-problem.js'
import type { Immutable } from './schema/section.js'
import { modelText, text } from './schema/value-types.js'

/** The names of the platforms in the file, in the order of the documentation. */
const PLATFORM_NAMES = ['bedrock', 'vertex', 'azure'] as const
type PlatformName = (typeof PLATFORM_NAMES)[number]

/** Values of `dialect`. */
export const DIALECTS = [
  'openai',
  'openai-chat',
  'openai-responses',
  'anthropic',
  'gemini',
  'converse',
] as const satisfies readonly (DialectName | 'openai')[]

/** The wire format of an upstream; `openai` picks chat completions or Responses per model and request. */
export type DialectChoice = (typeof DIALECTS)[number]

/** The properties of one platform. */
interface Platform {
  readonly dialects: readonly DialectChoice[]
  /** The key of `auth` with its identities. */
  readonly cloud: Exclude<IdentityConfig['cloud'], 'ibm'>
  /** Keys of the upstream that only this platform has. */
  readonly keys: readonly PlatformKey[]
}

type PlatformKey = 'region' | 'project' | 'location' | 'api_version' | 'deployments'

const OPENAI: readonly DialectChoice[] = ['openai', 'openai-chat', 'openai-responses']

const PLATFORMS: Readonly<Record<PlatformName, Platform>> = {
  bedrock: { dialects: ['anthropic', 'converse', ...OPENAI], cloud: 'aws', keys: ['region'] },
  vertex: { dialects: ['anthropic', 'gemini'], cloud: 'google', keys: ['project', 'location'] },
  azure: {
    dialects: [...OPENAI, 'anthropic'],
    cloud: 'azure',
    keys: ['api_version', 'deployments'],
  },
}

const PLATFORM_KEYS = Object.values(PLATFORMS).flatMap(({ keys }) => keys)

const DEFAULT = z.literal('default')
const secret = text(8_192)
const place = (what: string, example: string) =>
  z.string().regex(/^[a-z][a-z0-9-]{1,62}$/, { error: `must be ${what}, such as ${example}` })

const awsAuth = z
  .union(
    [
      DEFAULT,
      z.strictObject({
        access_key_id: text(128),
        secret_access_key: secret,
        session_token: secret.optional(),
      }),
      z.strictObject({ profile: text(256) }),
      z.strictObject({
        role_arn: z.string().regex(/^arn:[!-~]{1,2044}$/, {
          error: 'must be the ARN of a role, such as arn:aws:iam::123456789012:role/models',
        }),
        external_id: text(1_224).optional(),
        session_name: z
          .string()
          .regex(/^[\w+=,.@-]{2,64}$/, {
            error: 'must have 2 to 64 letters, digits and characters of _+=,.@-',
          })
          .optional(),
      }),
    ],
    {
      error:
        'must be default, or a map with access_key_id and secret_access_key (and session_token), with profile, or with role_arn (and external_id, session_name)',
    },
  )
  .describe(
    'AWS credentials. `default`: the chain of the AWS SDK (environment, profile, web identity, container, instance metadata). Or `{ access_key_id, secret_access_key, session_token }`, `{ profile }`, or `{ role_arn, external_id, session_name }` to assume a role with the credentials of the chain.',
  )

const googleAuth = z
  .union([DEFAULT, z.strictObject({ credentials_file: text(4_096) })], {
    error: 'must be default, or a map with credentials_file',
  })
  .describe(
    'Google credentials. `default`: Application Default Credentials (service account file, workload identity federation, metadata server). Or `{ credentials_file }`: a JSON file of credentials; relative paths start at the folder of this file.',
  )

const azureAuth = z
  .union([DEFAULT, z.strictObject({ tenant_id: text(256), client_id: text(256), client_secret: secret })], {
    error: 'must be default, or a map with tenant_id, client_id and client_secret',
  })
  .describe(
    'Entra credentials. `default`: environment, workload identity, managed identity. Or `{ tenant_id, client_id, client_secret }`.',
  )

/** The address of IAM, from "Generating an IBM Cloud IAM token by using an API key", read 2026-11-30. */
const IBM_TOKEN_URL = 'https://iam.cloud.ibm.com/identity/token'

const ibmAuth = z
  .strictObject(
    {
      api_key: secret,
      token_url: z
        .string()
        .regex(/^(?:https:\/\/|http:\/\/(?:localhost|127\.0\.0\.1)[:/])[!-~]{1,500}$/, {
          error: 'must be a URL with https://',
        })
        .optional(),
    },
    { error: 'must be a map with api_key (and token_url)' },
  )
  .describe(
    `IBM Cloud, for watsonx, without a platform: \`{ api_key, token_url }\`. The key of a user or a service id is exchanged for a token of IAM, at \`token_url\` (default \`${IBM_TOKEN_URL}\`).`,
  )

/** The keys of an upstream that belong to platforms. */
export const platformKeys = {
  platform: z
    .enum(PLATFORM_NAMES)
    .optional()
    .describe(
      'The cloud that serves the models: `bedrock` (dialects `anthropic`, `converse`, `openai`, `openai-chat`, `openai-responses`), `vertex` (`anthropic`, `gemini`) or `azure` (`openai`, `openai-chat`, `openai-responses`, `anthropic`). It decides address, authentication and framing. Left out: the own API of a vendor.',
    ),
  region: place('a region', 'eu-west-1')
    .optional()
    .describe('Bedrock: the AWS region. Requests are signed for it, with any `base_url`.'),
  project: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.:-]{0,127}$/, { error: 'must be the id of a project' })
    .optional()
    .describe('Vertex: the Google Cloud project. Without it `api_key` uses express mode.'),
  location: place('a location', 'us-east5')
    .optional()
    .describe('Vertex: `global`, `us`, `eu` or a region such as `us-east5`.'),
  api_version: z
    .string()
    .regex(/^\d{4}-\d{2}-\d{2}(?:-preview)?$/, {
      error: 'must be a date, such as 2024-10-21 or 2025-04-01-preview',
    })
    .optional()
    .describe(
      'Azure OpenAI: uses the older addresses (`/openai/deployments/{deployment}/…`) with this version. Left out: `/openai/v1`.',
    ),
  deployments: z
    .record(modelText, z.string().regex(/^[\w.-]{1,128}$/, { error: 'must be the name of a deployment' }))
    .default({})
    .describe(
      'Azure: the deployment of each model whose deployment has another name: `{ gpt-5.4: prod-gpt }`.',
    ),
  auth: z
    .strictObject({
      aws: awsAuth.optional(),
      google: googleAuth.optional(),
      azure: azureAuth.optional(),
      ibm: ibmAuth.optional(),
      scope: z
        .string()
        .regex(/^https:\/\/[!-~]{1,500}$/, { error: 'must be a URL with https://' })
        .optional()
        .describe(
          'Entra: the audience of the token. Default: `https://cognitiveservices.azure.com/.default`.',
        ),
    })
    .optional()
    .describe(
      "The identity of the gateway at the platform, or at IBM Cloud, instead of `api_key`. Its credentials are refreshed in the background before they expire. The cloud's library is loaded only if an upstream has this key.",
    ),
  anthropic_version: z
    .string()
    .regex(/^[\w.-]{1,64}$/, { error: 'must be a version, such as 2023-06-01' })
    .optional()
    .describe(
      'Dialect `anthropic`: the version sent with every request: the header `anthropic-version`, or `anthropic_version` in the body on Bedrock and Vertex. Default: the version that the request was written for.',
    ),
}

/** The values of these keys and of those that they depend on, in the file's spelling. */
type PlatformValues = z.output<z.ZodObject<typeof platformKeys>> & {
  readonly dialect?: DialectChoice | undefined
  readonly base_url?: string | undefined
  readonly path?: string | undefined
  readonly preset?: string | undefined
  readonly api_key?: string | undefined
  readonly api_keys?: readonly string[] | undefined
}

/** The sentence part with every combination: `bedrock with anthropic, …; vertex with …`. */
const COMBINATIONS = PLATFORM_NAMES.map((name) => `${name} with ${PLATFORMS[name].dialects.join(', ')}`).join(
  '; ',
)

/** The position of the upstream in the file, and its sources. */
interface PlatformContext {
  readonly path: Path
  readonly hasApiKey: boolean
  readonly readFile: (path: string) => string | null
  readonly whyUnreadable: (path: string) => string
}

/** Reports combinations of these keys that do not exist. */
export function checkPlatform(values: PlatformValues, context: PlatformContext, report: ReportFinding): void {
  const { path } = context
  const { platform, dialect } = values
  if (values.anthropic_version !== undefined && dialect !== 'anthropic') {
    report([...path, 'anthropic_version'], 'needs the dialect anthropic')
  }
  if (platform === undefined) return checkWithoutPlatform(values, context, report)
  const { dialects, keys } = PLATFORMS[platform]
  if (values.preset !== undefined && !(platform === 'azure' && values.preset === 'azure')) {
    report([...path, 'preset'], `must be removed: the platform ${platform} decides these values`)
  }
  if (dialect !== undefined && !dialects.includes(dialect)) {
    report([...path, 'dialect'], `the platform ${platform} has no dialect ${dialect}; use ${COMBINATIONS}`)
  }
  if (values.path !== undefined) {
    report([...path, 'path'], `must be removed: the platform ${platform} decides the path`)
  }
  for (const key of PLATFORM_KEYS) {
    if (isGiven(values, key) && !keys.includes(key)) {
      report([...path, key], `must be removed: ${ownerOf(key)}`)
    }
  }
  if (platform === 'bedrock' && values.region === undefined) {
    report([...path, 'region'], 'is required for the platform bedrock, as in eu-west-1')
  }
  checkVertex(values, context, report)
  if (platform === 'azure' && values.base_url === undefined) {
    report(
      [...path, 'base_url'],
      'is required for the platform azure, as in https://RESOURCE.openai.azure.com',
    )
  }
  if (dialect === 'anthropic' && values.api_version !== undefined) {
    report([...path, 'api_version'], 'must be removed: Claude on Azure has no dated addresses')
  }
  checkAuth(values, platform, context, report)
}

/** Whether the file has the key; `deployments` has a default. */
function isGiven(values: PlatformValues, key: PlatformKey): boolean {
  return key === 'deployments' ? Object.keys(values.deployments).length > 0 : values[key] !== undefined
}

function ownerOf(key: PlatformKey): string {
  const owner = PLATFORM_NAMES.find((name) => PLATFORMS[name].keys.includes(key)) ?? 'azure'
  return `it belongs to the platform ${owner}`
}

function checkWithoutPlatform(
  values: PlatformValues,
  { path, hasApiKey }: PlatformContext,
  report: ReportFinding,
): void {
  const { dialect } = values
  if (dialect === 'converse') {
    report([...path, 'dialect'], `converse needs platform: bedrock; use ${COMBINATIONS}`)
  }
  for (const key of PLATFORM_KEYS) {
    if (isGiven(values, key)) report([...path, key], `needs a platform: ${ownerOf(key)}`)
  }
  const { auth } = values
  if (auth === undefined) return
  const at = [...path, 'auth']
  if (Object.keys(auth).some((key) => key !== 'ibm') || auth.ibm === undefined) {
    report(at, `needs a platform; use ${COMBINATIONS}`)
  } else if (hasApiKey) report(at, 'must be removed: api_key is set already')
}

function checkVertex(
  values: PlatformValues,
  { path, hasApiKey: isExpress }: PlatformContext,
  report: ReportFinding,
): void {
  if (values.platform !== 'vertex') return
  const { project, location } = values
  if (project === undefined && (!isExpress || location !== undefined)) {
    report([...path, 'project'], 'is required for the platform vertex')
  }
  if (location === undefined && (!isExpress || project !== undefined)) {
    report([...path, 'location'], 'is required for the platform vertex, as in global or us-east5')
  }
}

function checkAuth(
  { auth }: PlatformValues,
  platform: PlatformName,
  { path, hasApiKey, readFile, whyUnreadable }: PlatformContext,
  report: ReportFinding,
): void {
  const { cloud } = PLATFORMS[platform]
  if (auth === undefined) {
    if (!hasApiKey) {
      report([...path, 'auth'], `is required: use auth: { ${cloud}: default } or api_key`)
    }
    return
  }
  const at = [...path, 'auth']
  if (hasApiKey) report(at, 'must be removed: api_key is set already')
  const others = (['aws', 'google', 'azure', 'ibm'] as const).filter(
    (other) => other !== cloud && auth[other] !== undefined,
  )
  const usual = `use auth: { ${cloud}: default } or api_key`
  for (const other of others) {
    report([...at, other], `the platform ${platform} has identities of ${cloud} only: ${usual}`)
  }
  if (auth[cloud] === undefined && others.length === 0) {
    report(at, `must have the key ${cloud} for the platform ${platform}: ${usual}`)
  }
  if (auth.scope !== undefined && cloud !== 'azure') {
    report([...at, 'scope'], 'must be removed: it belongs to the platform azure')
  }
  const { google } = auth
  if (google === undefined || google === 'default') return
  const file = google.credentials_file
  const content = readFile(file)
  const fileAt = [...at, 'google', 'credentials_file']
  if (content === null) report(fileAt, `the file "${file}" ${whyUnreadable(file)}`)
  else if (!isJsonObject(content)) report(fileAt, 'the file contains no JSON object')
}

function isJsonObject(content: string): boolean {
  try {
    const value: unknown = JSON.parse(content)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** Variables by name. */
type Env = Readonly<Record<string, string | undefined>>

/** The platform of an upstream: its address and the names that requests need. */
export type PlatformConfig = Immutable<NonNullable<ReturnType<typeof platformOf>>>

/** The resolved platform of an upstream; null for the own API of a vendor. */
export function platformOf(values: PlatformValues, env: Env) {
  const { platform, region, project, location, api_version: apiVersion, deployments } = values
  if (platform === undefined) return null
  return {
    name: platform,
    /** The address without the platform's own path and without a trailing slash. */
    root: withoutSlashes(values.base_url ?? defaultRoot(values, env)),
    /** Bedrock; requests are signed for it. */
    region: region ?? null,
    /** Vertex; null in express mode. */
    project: project ?? null,
    location: location ?? null,
    /** Azure's dated addresses; null for `/openai/v1`. */
    apiVersion: apiVersion ?? null,
    /** Azure: the deployment of a model, if its name differs. */
    deployments,
  }
}

/**
 * The address without the platform's path.
 *
 * Sources: AWS `endpoint-rule-set-1.json` of Bedrock Runtime, google-genai 3.4.0 `_api_client.py`,
 * Anthropic's Vertex SDK 1.1.3, read 2026-11-23.
 */
function defaultRoot({ platform, region, location }: PlatformValues, env: Env): string {
  if (platform === 'bedrock') return bedrockRoot(region ?? '', env)
  if (platform !== 'vertex') return ''
  if (location === undefined || location === 'global') return 'https://aiplatform.googleapis.com'
  return location === 'us' || location === 'eu'
    ? `https://aiplatform.${location}.rep.googleapis.com`
    : `https://${location}-aiplatform.googleapis.com`
}

function bedrockRoot(region: string, env: Env): string {
  const own = env['AWS_ENDPOINT_URL_BEDROCK_RUNTIME'] ?? env['AWS_ENDPOINT_URL']
  if (own !== undefined && URL.canParse(own)) return own
  const fips = env['AWS_USE_FIPS_ENDPOINT'] === 'true' ? '-fips' : ''
  const isChina = region.startsWith('cn-')
  const domain =
    env['AWS_USE_DUALSTACK_ENDPOINT'] === 'true'
      ? isChina
        ? 'api.amazonwebservices.com.cn'
        : 'api.aws'
      : isChina
        ? 'amazonaws.com.cn'
        : 'amazonaws.com'
  return `https://bedrock-runtime${fips}.${region}.${domain}`
}

/** The address below which the paths of the dialect are: the root and the platform's own path. */
export function platformBaseUrl(platform: PlatformConfig, dialect: DialectChoice): string {
  const { root } = platform
  const { pathname } = new URL(root)
  const own = ownPath(platform, dialect)
  return root + own.slice(overlap(withoutSlashes(pathname), own))
}

/** The length of the longest end of `base` that `own` begins with, so that a version is not doubled. */
function overlap(base: string, own: string): number {
  if (base.endsWith('/v1') && own.endsWith('/v1')) return own.length
  for (let at = base.indexOf('/'); at !== -1; at = base.indexOf('/', at + 1)) {
    const tail = base.slice(at)
    if (own === tail || own.startsWith(`${tail}/`)) return tail.length
  }
  return 0
}

function ownPath(platform: PlatformConfig, dialect: DialectChoice): string {
  const { name, project, location, apiVersion } = platform
  switch (name) {
    case 'bedrock':
      return dialect.startsWith('openai') ? '/openai/v1' : ''
    case 'vertex': {
      // `@google/genai` uses v1beta1, Anthropic's SDK v1.
      const [version, publisher] = dialect === 'anthropic' ? ['v1', 'anthropic'] : ['v1beta1', 'google']
      const scope = project === null ? '' : `/projects/${project}/locations/${location ?? 'global'}`
      return `/${version}${scope}/publishers/${publisher}`
    }
    case 'azure':
      if (dialect === 'anthropic') return '/anthropic/v1'
      return apiVersion === null ? '/openai/v1' : '/openai'
    default:
      return name satisfies never
  }
}

/** The identity of the gateway at a cloud. Nulls in all members: the cloud's default chain. */
export type IdentityConfig =
  | {
      readonly cloud: 'aws'
      readonly accessKeyId: string | null
      readonly secretAccessKey: string | null
      readonly sessionToken: string | null
      readonly profile: string | null
      readonly roleArn: string | null
      readonly externalId: string | null
      readonly sessionName: string | null
    }
  | {
      readonly cloud: 'google'
      /** An absolute path. */
      readonly credentialsFile: string | null
      readonly project: string | null
    }
  | {
      readonly cloud: 'azure'
      readonly tenantId: string | null
      readonly clientId: string | null
      readonly clientSecret: string | null
      readonly scope: string
    }
  | {
      readonly cloud: 'ibm'
      readonly apiKey: string
      readonly tokenUrl: string
    }

/** The resolved identity of an upstream; null if it uses an API key. `fileOf` resolves a path of the file. */
export function authOf(
  { auth, project }: Pick<PlatformValues, 'auth' | 'project'>,
  fileOf: (path: string) => string,
): IdentityConfig | null {
  if (auth === undefined) return null
  const { aws, google, azure, ibm, scope } = auth
  if (ibm !== undefined) {
    return { cloud: 'ibm', apiKey: ibm.api_key, tokenUrl: ibm.token_url ?? IBM_TOKEN_URL }
  }
  if (google !== undefined) {
    const file = google === 'default' ? null : fileOf(google.credentials_file)
    return { cloud: 'google', credentialsFile: file, project: project ?? null }
  }
  if (azure !== undefined) {
    const client = azure === 'default' ? null : azure
    return {
      cloud: 'azure',
      tenantId: client?.tenant_id ?? null,
      clientId: client?.client_id ?? null,
      clientSecret: client?.client_secret ?? null,
      scope: scope ?? 'https://cognitiveservices.azure.com/.default',
    }
  }
  const named: AwsNames = aws === undefined || aws === 'default' ? {} : aws
  return {
    cloud: 'aws',
    accessKeyId: named.access_key_id ?? null,
    secretAccessKey: named.secret_access_key ?? null,
    sessionToken: named.session_token ?? null,
    profile: named.profile ?? null,
    roleArn: named.role_arn ?? null,
    externalId: named.external_id ?? null,
    sessionName: named.session_name ?? null,
  }
}

/** The members of all forms of `auth.aws`. */
type AwsNames = Readonly<
  Partial<
    Record<
      | 'access_key_id'
      | 'secret_access_key'
      | 'session_token'
      | 'profile'
      | 'role_arn'
      | 'external_id'
      | 'session_name',
      string | undefined
    >
  >
>

/** The text without the slashes at its end. */
export function withoutSlashes(text: string): string {
  let end = text.length
  while (text[end - 1] === '/') end -= 1
  return text.slice(0, end)
}
