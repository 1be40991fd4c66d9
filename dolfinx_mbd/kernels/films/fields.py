"""Names of the entries of packed arrays of oil films."""

#: Motion y of a journal in its bore, see `frames`: position and slope of its axis, their rates, the
#: spin Ω, and the axial position of its frame
E_X, E_Y, T_X, T_Y, E_X_RATE, E_Y_RATE, T_X_RATE, T_Y_RATE, SPIN, AXIAL = range(10)

#: Film loads g, see `frames`: the force on the journal, its first moment, and the drag torque
F_X, F_Y, G_X, G_Y, DRAG = range(5)

#: Constants of a bearing. On a grid they include the pressure coefficient of Barus' law and the
#: constants of `rough_surfaces`: whether there are flow factors, C and r around and along the bore,
#: A₁, a₁, a₂, a₃, A₂ and the weight 2 V − 1 of the shear flow
RADIUS, LENGTH, CLEARANCE, VISCOSITY, ROUGHNESS, MODULUS, FRICTION, FRICTION_SPEED = range(8)
BARUS, FACTORS, FLOW_AROUND, FLOW_ALONG = 8, 9, 10, 12
SHEAR_A1, SHEAR_POWER, SHEAR_RATE, SHEAR_SQUARE, SHEAR_A2, SHEAR_WEIGHT = range(14, 20)

#: State of a film; the friction power is the power that the film and touching asperities dissipate
SMALLEST_GAP, PEAK_PRESSURE, SIDE_FLOW, FRICTION_POWER = range(4)

#: Rows of an array (2, n): points of a quadrature rule, and their weights or areas
POINT, WEIGHT = range(2)

#: Arrays `flow` of a grid, see `reynolds`
AROUND, ALONG, SOURCE, LINKS, LINK_INFLOW, THICKNESS_AROUND, THICKNESS_ALONG = range(7)
ENTRAINED, STRESS, CONTENT_SLOPE, FACE = range(7, 11)

#: Columns of the array `ends` of a grid, see `reynolds`
DISTANCE, SUPPLY, CONDUCTANCE = range(3)

#: Gap and rate of squeeze at one angle, see `short_bearing`: n, h₀, h₁, g₀, g₁ and the derivatives
#: of the last four with respect to the angle
N_X, N_Y, H0, H1, G0, G1, H0_SLOPE, H1_SLOPE, G0_SLOPE, G1_SLOPE = range(10)

#: Derivatives with respect to h₀, h₁, g₀ and g₁
BY_H0, BY_H1, BY_G0, BY_G1 = range(4)

#: Columns of the moments of a cell, see `axial_strips`: ∫ rᵏ G/H³, ∫ rᵏ/H³ and ∫ 1/H
GROWTH, GROWTH_R, GROWTH_RR, CUBE, CUBE_R, CUBE_RR, SHEAR = range(7)

#: Integrals along the axis at one angle, where asperities touch: of the contact pressure p, of its
#: derivative p′ with respect to the gap (both also times powers of z), and of the energy
CONTACT, CONTACT_Z, SLOPE, SLOPE_Z, SLOPE_ZZ, ENERGY = range(6)

#: Columns of a range of angles: its middle, and half its width
MIDDLE, HALF_WIDTH = range(2)

#: The integral ∫1/H along the axis, and its derivatives with respect to h₀ and h₁
INVERSE, INVERSE_BY_H0, INVERSE_BY_H1 = range(3)

#: Pressures at the nodes of a grid: of the film, and of asperities
FILM, ASPERITIES = range(2)
