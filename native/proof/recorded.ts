/**
 * The digests of the probe, by numeric profile. `npm run record:arithmetic` writes this file, on a processor that has
 * every profile.
 */
export const recordedProbes: Readonly<Record<string, string>> = {
  'det-1': 'ccd920edcef71cb128948c5c419178372ecbf9b115a65c4439dd9e0a844c74cd',
  'det-bf16-3-amx': 'cd5266ed8e3b0d50523c400d47000cbbe27648b541746415e10447b2a8e4c790',
  'det-bf16-3-avx512_bf16': 'cb6911e2b6a5aca07ab8ea58b2ce435c08182e14625de54ccb38839cb0866020',
};
