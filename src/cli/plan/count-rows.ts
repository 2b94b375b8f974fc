/** Counts equal rows. */

/** Rows with their number of requests, highest first. */
export class RowCounts<Row extends object> {
  private readonly counts = new Map<string, { readonly row: Row; requests: number }>()

  add(row: Row, requests: number): void {
    const name = JSON.stringify(row)
    const known = this.counts.get(name)
    if (known === undefined) this.counts.set(name, { row, requests })
    else known.requests += requests
  }

  /** Rounded to a hundredth of a request: shares of targets may not be whole numbers. */
  rows(): (Row & { readonly requests: number })[] {
    return [...this.counts.values()]
      .map(({ row, requests }) => ({ ...row, requests: Math.round(requests * 100) / 100 }))
      .sort((a, b) => b.requests - a.requests)
  }
}
